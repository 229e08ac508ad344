from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.client import plan, redrive, trails
from penstock.client.plan import Plan, drive_blocking
from penstock.desk.views.audit import AuditFilter
from penstock.desk.views.errors import ErrorFilter
from tests.unit.desk.letter_scene import fail
from tests.unit.desk.office import Office

EVENTS = 12


class Desk:
    """An office whose time passes while somebody sleeps."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.questions = 0

    def run(self, plan: Plan[Any]) -> Any:
        return drive_blocking(plan, self._ask, self.office.clock.advance)

    def republish(self, numbers: list[int], **more: Any) -> None:
        now_s = self.office.clock.now_s
        self.run(redrive.republish_all(numbers, clock=now_s, **more))

    def _ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        self.questions += 1
        answer = self.office.desk.ask(verb, arguments)
        self.office.commit()
        return answer


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Letters 0 to 11 are of ``me``, 12 to 23 of ``you``."""
    office = Office(tmp_path)
    office.publish("t", *(b"%d" % number for number in range(EVENTS)))
    for name in ("me", "you"):
        consumer = office.subscribe(name, "t", tries=1, window=100)
        fail(office, consumer, "ValueError", "no")
    yield Desk(office)
    office.broker.log.abandon()


def test_what_is_sent_slowly_is_one_row(desk: Desk) -> None:
    desk.republish(list(range(EVENTS)), rate=5, by="anna")

    stored = desk.office.desk.audit.search().entries
    (row,) = desk.run(trails.audit())

    assert len(stored) == EVENTS
    assert row.numbers == list(range(EVENTS))
    assert (row.by, row.action, row.subscriber) == ("anna", "republished", "me")
    assert (row.entry, row.at_ms) == (stored[-1].entry, stored[-1].at_ms)


def test_subscribers_that_take_turns_have_a_row_each(desk: Desk) -> None:
    turns = [0, 12, 1, 13, 2, 14, 3, 15, 4, 16, 5, 17]
    desk.republish(turns, rate=5)

    rows = desk.run(trails.audit())

    found = {row.subscriber: row.numbers for row in rows}
    assert found == {"me": list(range(6)), "you": list(range(12, 18))}


def test_what_was_done_later_is_apart(desk: Desk) -> None:
    for pause_s in (1, 61, 1):
        desk.republish([desk.questions], by="anna")
        desk.office.clock.advance(pause_s)

    rows = desk.run(trails.audit())

    assert [row.numbers for row in rows] == [[2], [0, 1]]


def test_what_others_did_is_apart(desk: Desk) -> None:
    desk.republish([0], by="anna")
    desk.republish([1], by="bob")
    desk.run(redrive.drop_all([2], reason="old", by="bob"))

    rows = desk.run(trails.audit())

    assert [row.numbers for row in rows] == [[2], [1], [0]]


def test_edits_stand_alone(desk: Desk) -> None:
    for number in (0, 1):
        desk.office.desk.redrive.edit(number=number, payload=b"x", by="anna")
    desk.office.commit()

    rows = desk.run(trails.audit())

    assert [row.numbers for row in rows] == [[1], [0]]


def test_the_trail_is_read_over_many_pages_and_not_further_than_needed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trails, "MAX_ROWS", 2)
    for number in range(6):
        desk.republish([number], by=f"user {number}")

    desk.questions = 0
    two = desk.run(trails.audit(count=2))
    assert ([row.numbers for row in two], desk.questions) == ([[5], [4]], 2)
    assert len(desk.run(trails.audit())) == 6
    (one,) = desk.run(trails.audit(AuditFilter(number=3)))
    assert one.by == "user 3"
    monkeypatch.setattr(trails, "MAX_ENTRIES", 3)
    assert len(desk.run(trails.audit(count=3))) == 3


def test_failed_tries_are_listed_from_both_ends(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MAX_ROWS", 5)

    newest = desk.run(trails.errors(ErrorFilter(subscriber="me"), count=7))
    oldest = desk.run(trails.errors(count=100, oldest_first=True))

    assert [row.offset for row in newest] == list(range(11, 4, -1))
    assert len(oldest) == 2 * EVENTS
    assert oldest[0].subscriber == "me"
