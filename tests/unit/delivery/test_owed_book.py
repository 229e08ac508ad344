from __future__ import annotations

from random import Random

import pytest

from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.delivery.owed_book import OwedBook, SentRun
from penstock.delivery.states import OwedState
from tests.unit.delivery.scene import Scene


@pytest.fixture
def consumer() -> Consumer:
    return Scene().subscribe()


def booked(
    consumer: Consumer, *runs: tuple[int, int], due_s: float = 5.0, level: int = 0
) -> OwedBook:
    book = OwedBook()
    for lo, hi in runs:
        book.add_run(SentRun(lo, hi, level, due_s, consumer))
    return book


def test_empty_book_owes_nothing() -> None:
    book = OwedBook()

    assert (len(book), list(book), list(book.values())) == (0, [], [])
    assert 3 not in book
    assert (book.get(3), book.single(3), book.holder_of(3)) == (None, None, None)
    assert (book.lowest(7), book.next_due_s()) == (7, None)
    with pytest.raises(KeyError):
        book[3]


def test_run_is_a_mapping_of_offsets(consumer: Consumer) -> None:
    book = booked(consumer, (2, 5), level=4)

    assert (len(book), list(book)) == (3, [2, 3, 4])
    assert (1 in book, 2 in book, 4 in book, 5 in book) == (False, True, True, False)
    assert (book.holder_of(4), book.holder_of(5)) == (consumer, None)
    assert [one.offset for one in book.values()] == [2, 3, 4]
    one = book[3]
    assert (one.state, one.tries, one.due_s) == (OwedState.SENT, 1, 5.0)
    assert (one.level, one.holder, one.recorded) == (4, consumer, False)
    assert (book.runs, book.singles(), book.touched) == ([(2, 5, 4)], [], {})


def test_neighbours_of_one_sending_are_one_run(consumer: Consumer) -> None:
    book = booked(consumer, (0, 2), (2, 4))
    book.add_run(SentRun(4, 5, 1, 5.0, consumer))
    book.add_run(SentRun(5, 6, 1, 6.0, consumer))
    book.add_run(SentRun(6, 7, 1, 6.0, Scene().subscribe()))
    book.add_run(SentRun(9, 10, 1, 6.0, consumer))

    assert [run[:2] for run in book.runs] == [(0, 4), (4, 5), (5, 6), (6, 7), (9, 10)]
    assert len(book) == 8


@pytest.mark.parametrize(
    ("offset", "runs"),
    [
        (2, [(3, 6, 0)]),
        (5, [(2, 5, 0)]),
        (4, [(2, 4, 0), (5, 6, 0)]),
    ],
)
def test_settled_event_leaves_its_run_without_a_trace(
    consumer: Consumer, offset: int, runs: list[tuple[int, int, int]]
) -> None:
    book = booked(consumer, (2, 6))

    assert book.settle(offset)

    assert (book.runs, book.touched, len(book)) == (runs, {}, 3)
    assert offset not in book
    assert not book.settle(offset)


def test_last_event_of_a_run_ends_it(consumer: Consumer) -> None:
    book = booked(consumer, (2, 3))

    book.settle(2)

    assert (book.runs, len(book)) == ([], 0)


def test_event_that_is_changed_stands_for_itself_and_is_touched(
    consumer: Consumer,
) -> None:
    book = booked(consumer, (2, 6))

    one = book.get(4)

    assert one is not None
    assert (one.offset, one.holder) == (4, consumer)
    assert book.get(4) is book.single(4) is book[4] is one
    assert book.runs == [(2, 4, 0), (5, 6, 0)]
    assert (list(book.touched), sorted(book), len(book)) == ([4], [2, 3, 4, 5], 4)
    book.forget(4)
    book.forget(4)
    assert 4 not in book


@pytest.mark.parametrize(
    ("lo", "hi", "left"),
    [
        (0, 20, [15, 16]),
        (3, 12, [0, 1, 2, 15, 16, 12, 13]),
        (4, 5, [0, 1, 2, 3, 10, 11, 12, 13, 15, 16]),
        (7, 9, [0, 1, 2, 3, 4, 10, 11, 12, 13, 15, 16]),
        (15, 17, [0, 1, 2, 3, 4, 10, 11, 12, 13, 15, 16]),
    ],
)
def test_range_settles_what_its_holder_has_in_runs(
    consumer: Consumer, lo: int, hi: int, left: list[int]
) -> None:
    book = booked(consumer, (0, 5), (10, 14))
    book.add_run(SentRun(15, 17, 0, 5.0, Scene().subscribe()))

    taken = book.settle_range(lo, hi, consumer)

    assert sorted(book) == sorted(left)
    assert taken == 11 - len(left)


@pytest.mark.parametrize(
    ("lo", "hi", "covered"),
    [(2, 6, True), (3, 4, True), (1, 3, False), (5, 7, False), (8, 9, False)],
)
def test_run_covers_what_is_wholly_inside(
    consumer: Consumer, lo: int, hi: int, covered: bool
) -> None:
    book = booked(consumer, (2, 6))

    assert book.covers(lo, hi, consumer) is covered
    assert not book.covers(lo, hi, Scene().subscribe())


def test_holder_gets_its_events_one_by_one(consumer: Consumer) -> None:
    other = Scene().subscribe()
    book = booked(consumer, (0, 2))
    book.add_run(SentRun(2, 4, 0, 5.0, other))
    book.get(2)

    held = book.held_by(consumer)

    assert [one.offset for one in held] == [0, 1]
    assert book.runs == [(3, 4, 0)]
    assert sorted(book.touched) == [0, 1, 2]


def test_due_events_are_those_whose_moment_has_come(consumer: Consumer) -> None:
    book = booked(consumer, (0, 2), due_s=5.0)
    book.add_run(SentRun(2, 4, 0, 6.0, consumer))
    book.add_run(SentRun(4, 6, 0, 0.0, consumer))
    single = Owed(9, 0)
    single.due_s = 4.0
    book.add(single)
    book.add(Owed(8, 0))

    assert book.next_due_s() == 4.0
    assert [one.offset for one in book.due(5.0)] == [9, 0, 1]
    assert book.runs == [(2, 4, 0), (4, 6, 0)]
    assert book.due(3.0) == []


def test_lowest_offset_is_of_a_run_or_a_single_or_the_default(
    consumer: Consumer,
) -> None:
    book = booked(consumer, (5, 8))

    assert (book.lowest(9), book.lowest(2)) == (5, 2)
    book.add(Owed(3, 0))
    assert book.lowest(9) == 3


def test_said_events_are_known_to_the_journal(consumer: Consumer) -> None:
    book = booked(consumer, (0, 9))
    one, two = book.get(1), book.get(2)
    assert one is not None
    assert two is not None
    book.forget(2)

    book.said()

    assert (one.recorded, two.recorded, book.touched) == (True, False, {})
    late = Owed(20, 0)
    book.add(late)
    book.said()
    assert not late.recorded
    book.said(everything=True)
    assert late.recorded


def test_cleared_book_remembers_what_the_journal_has_to_forget(
    consumer: Consumer,
) -> None:
    book = booked(consumer, (0, 9))
    book.get(1)
    book.said()
    book.get(2)

    book.clear()

    assert (len(book), list(book.touched)) == (0, [1])


@pytest.mark.parametrize("seed", range(20))
def test_book_is_a_set_of_offsets_whatever_is_done_to_it(seed: int) -> None:
    random = Random(seed)
    holders = [Scene().subscribe() for _ in range(2)]
    book, model, end = OwedBook(), dict[int, Consumer](), 0
    for _ in range(300):
        match random.randrange(5):
            case 0:
                lo, end = end, end + random.randint(1, 6)
                holder = random.choice(holders)
                book.add_run(SentRun(lo, end, 0, 0.0, holder))
                model |= dict.fromkeys(range(lo, end), holder)
                end += random.randrange(2)
            case 1 if model:
                book.get(random.choice(list(model)))
            case 2:
                offset = random.randint(0, end)
                if book.settle(offset) or book.single(offset):
                    book.forget(offset)
                    del model[offset]
            case 3:
                lo = random.randint(0, end)
                hi, holder = lo + random.randint(0, 5), random.choice(holders)
                inside = [o for o in range(lo, hi) if model.get(o) is holder]
                gone = [o for o in inside if book.single(o) is None]
                assert book.settle_range(lo, hi, holder) == len(gone), seed
                for offset in gone:
                    del model[offset]
            case 4 if random.random() < 0.1:
                holder = random.choice(holders)
                held = {one.offset for one in book.held_by(holder)}
                assert held == {o for o, one in model.items() if one is holder}, seed

        assert sorted(book) == sorted(model), seed
        assert len(book) == len(model), seed
        assert all(book.holder_of(o) is one for o, one in model.items()), seed


def test_what_a_consumer_holds_is_counted(consumer: Consumer) -> None:
    other = Scene().subscribe()
    book = booked(consumer, (2, 5), (7, 9))
    book.add_run(SentRun(9, 20, 0, 5.0, other))

    book.get(3)

    assert (book.count_of(consumer), book.count_of(other)) == (5, 11)
    book.settle(7)
    book.forget(3)
    assert book.count_of(consumer) == 3
