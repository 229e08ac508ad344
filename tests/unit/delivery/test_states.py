from __future__ import annotations

from itertools import product

import pytest

from penstock.delivery.consumer import Consumer
from penstock.delivery.isolation import SendAgain
from penstock.delivery.owed import Owed
from penstock.delivery.owed_book import OwedBook
from penstock.delivery.states import IN_FLIGHT, MOVES, QUEUED, Move, OwedState
from tests.unit.delivery.scene import Scene


@pytest.fixture(scope="module")
def consumer() -> Consumer:
    return Scene().subscribe()


def booked(state: OwedState) -> tuple[OwedBook, Owed]:
    """A book with one event in this state, as it gets there."""
    ways = {
        OwedState.SENT: [Move.SEND],
        OwedState.SUSPECT: [Move.ISOLATE],
        OwedState.ALONE: [Move.ISOLATE, Move.SEND],
        OwedState.PAUSED: [Move.PAUSE],
        OwedState.RELEASED: [Move.SEND, Move.RECEIVE],
        OwedState.SETTLED: [Move.GIVE_UP],
    }
    book, one = OwedBook(), Owed(7, 3)
    if state is OwedState.HELD:
        one.state = state
    book.add(one)
    for move in ways.get(state, []):
        book.move(one, move)
    return book, one


@pytest.mark.parametrize(("state", "move"), [*product(OwedState, Move)])
def test_book_moves_an_event_as_the_table_says_and_counts(
    state: OwedState, move: Move, consumer: Consumer
) -> None:
    book, one = booked(state)
    assert one.state is state
    after = MOVES.get((state, move))

    if after is None:
        with pytest.raises(KeyError):
            book.move(one, move)
        return
    book.move(one, move, 5.0, consumer)

    assert (one.state, one.due_s, one.holder) == (after, 5.0, consumer)
    assert book.in_flight == (after in IN_FLIGHT)
    assert book.paused == (after is OwedState.PAUSED)
    assert (7 in book) == (after is not OwedState.SETTLED)
    assert book.queue.alone == (7 if after is OwedState.ALONE else None)
    if after in QUEUED:
        assert isinstance(book.queue, SendAgain)
        assert book.queue.first(in_order=False)[0] == (-3, 7)


def test_nothing_leaves_what_is_settled() -> None:
    assert not [state for state, _ in MOVES if state is OwedState.SETTLED]


def test_every_state_can_end_settled() -> None:
    ends = {OwedState.SETTLED}
    while more := {a for (a, _), b in MOVES.items() if b in ends} - ends:
        ends |= more

    assert ends == set(OwedState)


def test_what_is_released_is_never_sent_again() -> None:
    after = {b for (a, _), b in MOVES.items() if a is OwedState.RELEASED}

    assert after == {OwedState.SETTLED}
