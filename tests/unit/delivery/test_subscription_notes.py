from __future__ import annotations

import pytest

from penstock.delivery.owed import JournalNotes
from penstock.delivery.states import OwedState
from penstock.delivery.subscription import Subscription
from penstock.model.policy import Policy
from tests.unit.delivery.scene import LOG, Scene


def unwired(
    policy: Policy = LOG, *, temporary: bool = False
) -> tuple[Subscription, JournalNotes]:
    """A subscription that is not wired yet, and its notes."""
    notes = JournalNotes()
    one = Subscription(1, "ann", "t", policy, 0, temporary=temporary, notes=notes)
    return one, notes


def row(
    offset: int, tries: int, state: OwedState = OwedState.READY
) -> tuple[int, int, int, OwedState, bool]:
    return offset, -1, tries, state, False


def test_new_subscription_is_at_its_start_and_owes_nothing() -> None:
    scene = Scene()
    scene.publish(0, 0)
    one, notes = unwired(Policy(window=3))

    one.wire(scene.broker.pages, scene.broker.levels.get)

    assert (one.position(), one.lag(), one.credit) == (0, 2, 3)
    assert (one.active, one.suspended, one.ended) == (True, False, False)
    assert (notes.dirty, one.drained) == ({}, False)


def test_what_the_journal_says_is_owed_waits_to_be_sent_again() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, _ = unwired(Policy(window=3))
    one.cursor.places = {-1: 7}
    one.take_up((), [row(0, 2), row(1, 1, OwedState.RELEASED)], [])
    one.take_up([0], [row(2, 4)], [(3, 5, -1)])

    one.wire(scene.broker.pages, scene.broker.levels.get)

    assert (sorted(one.owed), one.owed.in_flight, one.credit) == ([1, 2, 3, 4], 1, 2)
    assert (one.position(), one.lag()) == (1, 6)
    assert list(one.owed.touched) == [3, 4]
    assert [one.owed[offset].tries for offset in (1, 2, 3)] == [1, 4, 1]
    assert all(one.owed[offset].recorded for offset in one.owed)


def test_runs_of_the_last_record_count() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, _ = unwired()
    one.take_up((), (), [(0, 5, -1)])
    one.take_up((), (), [(2, 3, -1)])

    one.wire(scene.broker.pages, scene.broker.levels.get)

    assert list(one.owed) == [2]


@pytest.mark.parametrize(
    ("urgent", "relaxed", "noted"),
    [
        (False, False, (False, False)),
        (True, False, (True, True)),
        (True, True, (True, False)),
    ],
)
def test_note_says_how_soon_and_how_safely_it_is_to_be_written(
    urgent: bool, relaxed: bool, noted: tuple[bool, bool]
) -> None:
    one, notes = unwired()
    one.relaxed = relaxed

    one.note(urgent=urgent)

    assert list(notes.dirty) == [one]
    assert (notes.urgent, notes.sync) == noted


def test_tries_are_noted_as_urgent_and_without_a_sync() -> None:
    one, notes = unwired()

    one.note_tries()

    assert (list(notes.dirty), notes.urgent, notes.sync) == ([one], True, False)
    one.note(urgent=True)
    one.note_tries()
    assert notes.sync


def test_tries_that_were_noted_outlive_the_process_and_cost_no_sync() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    policy = Policy(window=3)
    consumer = scene.subscribe(policy)
    scene.commit()
    scene.take(consumer)
    waiting = [scene.broker.urgent]

    consumer.subscription.note_tries()

    waiting.append(scene.broker.urgent)
    assert waiting == [False, True]
    commit = scene.log.begin_commit()
    assert commit is not None
    assert not commit.sync
    commit.run()
    scene.log.end_commit(commit)
    scene.restart("kill")
    assert [one.tries for one in scene.subscription().owed.values()] == [1, 1, 1]


def test_one_careful_note_makes_all_of_them_careful() -> None:
    one, notes = unwired()
    one.note(urgent=True)
    one.relaxed = True

    one.note(urgent=True)

    assert notes.sync


@pytest.mark.parametrize("temporary", [False, True])
def test_nothing_is_noted_of_what_is_temporary_or_gone(temporary: bool) -> None:
    one, notes = unwired(temporary=temporary)
    one.ended = not temporary

    one.note(urgent=True)

    assert (notes.dirty, notes.urgent) == ({}, False)


def test_new_rules_wake_what_was_suspended() -> None:
    one, _ = unwired()
    one.active, one.suspended = False, True

    one.govern(Policy(window=5))

    assert (one.active, one.suspended, one.credit) == (True, False, 5)
