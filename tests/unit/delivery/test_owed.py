from __future__ import annotations

from penstock.delivery.owed import JournalNotes, Owed
from penstock.delivery.states import OwedState
from tests.unit.delivery.scene import Scene


def test_owed_event_begins_unsent_and_unknown_to_the_journal() -> None:
    one = Owed(5, 3)

    assert (one.offset, one.level, one.state) == (5, 3, OwedState.READY)
    assert (one.tries, one.due_s, one.holder, one.recorded) == (0, 0.0, None, False)


def test_cleared_notes_want_nothing() -> None:
    notes = JournalNotes()
    notes.dirty[Scene().subscribe().subscription] = None
    notes.urgent = notes.sync = True

    notes.clear()

    assert (notes.dirty, notes.urgent, notes.sync) == ({}, False, False)
