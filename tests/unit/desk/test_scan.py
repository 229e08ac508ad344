from __future__ import annotations

import pytest

from penstock.desk import scan
from penstock.desk.scan import Budget, backwards, forwards, since
from tests.unit.desk.office import Office


@pytest.fixture
def log(office: Office) -> Office:
    """Events 0 to 6 of ``t``, in two batches; 0 and 1 are gone."""
    office.publish("t", b"0", b"1", b"2")
    office.broker.log.roll("t")
    office.clock.advance(10)
    office.publish("t", b"3", b"4", b"5", b"6")
    office.broker.log.trim("t", 2)
    return office


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, None, [2, 3, 4, 5, 6]),
        (4, None, [4, 5, 6]),
        (0, 4, [2, 3]),
        (3, 5, [3, 4]),
        (5, 5, []),
        (7, None, []),
        (9, 100, []),
    ],
)
def test_events_are_read_forwards(
    log: Office, start: int, end: int | None, found: list[int]
) -> None:
    rows = list(forwards(log.broker.log, "t", start, end))

    assert [offset for offset, _ in rows] == found
    assert all(data == str(offset).encode() for offset, data in rows)


@pytest.mark.parametrize("step", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("before", "start", "found"),
    [
        (None, 0, [6, 5, 4, 3, 2]),
        (4, 0, [3, 2]),
        (100, 5, [6, 5]),
        (2, 0, []),
        (None, 9, []),
    ],
)
def test_events_are_read_backwards(
    log: Office,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    before: int | None,
    start: int,
    found: list[int],
) -> None:
    monkeypatch.setattr(scan, "STEP", step)

    rows = list(backwards(log.broker.log, "t", before, start))

    assert [offset for offset, _ in rows] == found


def test_a_topic_that_is_not_there_has_nothing(office: Office) -> None:
    log = office.broker.log

    assert list(forwards(log, "$audit")) == list(backwards(log, "$audit")) == []
    assert since(log, "$audit", 5) == 0


def test_a_time_tells_where_to_begin(log: Office) -> None:
    now_ms = int(log.now_s * 1000)

    assert since(log.broker.log, "t", None) == 0
    assert since(log.broker.log, "t", now_ms) == 3
    assert since(log.broker.log, "t", now_ms + 1) == 7


def test_a_budget_is_of_events_and_of_bytes() -> None:
    few, small = Budget(2, 100), Budget(100, 5)

    few.spend(1)
    small.spend(4)
    assert (few.spent, small.spent) == (False, False)

    few.spend(1)
    small.spend(4)
    assert (few.spent, small.spent) == (True, True)
