from __future__ import annotations

import pytest

from penstock.http.event_filter import EventFilter, picked
from penstock.http.search import parsed
from penstock.log import Batch, Columns, frame_of


@pytest.fixture
def batch() -> Batch:
    columns = Columns(
        [b'{"n":%d}' % n for n in range(6)],
        5,
        keys=[b"a", b"b", None, b"a", b"a", b"b"],
        headers=[{"type": "x"}, {}, {"type": "x"}, {"type": "y"}, {"type": "x"}, {}],
    )
    return Batch.of("t", frame_of(columns, 10, bytes(16)))


def test_nothing_wanted_keeps_nothing_back(batch: Batch) -> None:
    assert not EventFilter()
    assert EventFilter().indexes(batch) == list(range(6))


CASES = [
    (EventFilter(key=b"a"), [0, 3, 4]),
    (EventFilter(type="x"), [0, 2, 4]),
    (EventFilter(search=parsed("n>=4")), [4, 5]),
    (EventFilter(key=b"a", type="x"), [0, 4]),
    (EventFilter(key=b"a", type="x", search=parsed("n>0")), [4]),
    (EventFilter(key=b"zzz", search=parsed("n>0")), []),
]


@pytest.mark.parametrize(("event_filter", "indexes"), CASES)
def test_all_that_is_wanted_has_to_be_there(
    batch: Batch, event_filter: EventFilter, indexes: list[int]
) -> None:
    assert event_filter
    assert event_filter.indexes(batch) == indexes


def test_a_view_is_looked_at_and_not_its_batch(batch: Batch) -> None:
    view = batch.since(13).before(15)

    assert EventFilter(key=b"a").indexes(view) == [3, 4]
    assert EventFilter(search=parsed("n<4")).indexes(view) == [3]


@pytest.mark.parametrize("event_filter", [EventFilter(key=b"a"), EventFilter(type="x")])
def test_a_batch_without_the_column_has_nothing(event_filter: EventFilter) -> None:
    plain = Batch.of("t", frame_of(Columns([b"1"], 5), 0, bytes(16)))

    assert event_filter.indexes(plain) == []


def test_neighbours_are_picked_together(batch: Batch) -> None:
    views = picked(batch, [0, 1, 3, 5])

    assert [view.offsets() for view in views] == [[10, 11], [13], [15]]
