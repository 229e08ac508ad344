from __future__ import annotations

import pytest

from penstock.log import frame_of
from penstock.log.batch import Batch
from penstock.model import Event, ids
from penstock.model.columns import Columns

BASE = ids.id_base(1000, ids.low_id(bytes(10)))


def rich() -> Batch:
    """Five events from offset 10 on, every column in use."""
    columns = Columns(
        [b"0", b"", b"22", b"333", b"4"],
        [10, 11, 9, 13, 14],
        ids=[None, "one", None, "three", None],
        keys=[b"k", None, b"", b"k3", None],
        priorities=[0, 1, 2, 3, 255],
        headers=[{}, {"a": "1", "b": "2"}, {}, {"c": "é"}, {}],
        parents=[None, None, "p", None, None],
        producer="me",
    )
    return Batch.of("t", frame_of(columns, 10, BASE))


def gapped() -> Batch:
    """Offsets 11, 13 and 14 of a frame that covers 10 to 17."""
    columns = Columns([b"b", b"d", b"e"], [1, 2, 3])
    columns.offsets = [1, 3, 4]
    columns.span = 8
    return Batch.of("t", frame_of(columns, 10, BASE))


def test_events_have_everything_that_was_published() -> None:
    events = list(rich().events())

    assert events[1] == Event(
        topic="t",
        offset=11,
        id="one",
        timestamp_ms=11,
        payload=b"",
        key=None,
        priority=1,
        headers={"a": "1", "b": "2"},
        parent=None,
        producer="me",
    )
    assert [event.offset for event in events] == [10, 11, 12, 13, 14]
    assert [event.key for event in events] == [b"k", None, b"", b"k3", None]
    assert events[3].headers == {"c": "é"}


def test_missing_columns_read_as_their_defaults() -> None:
    batch = Batch.of("t", frame_of(Columns([b"a", b"b"], 7), 3, BASE))

    assert batch.timestamps() == [7, 7]
    assert batch.priorities() == [0, 0]
    assert batch.keys() == [None, None]
    assert batch.parents() == batch.producers() == [None, None]
    assert batch.headers() == [{}, {}]
    assert batch.ids() == [ids.event_id(BASE, 0), ids.event_id(BASE, 1)]


def test_constant_columns_read_as_many_times_as_there_are_events() -> None:
    columns = Columns([b"a", b"b"], keys=[b"k", b"k"], priorities=[3, 3])

    batch = Batch.of("t", frame_of(columns, 0, BASE))

    assert batch.keys() == [b"k", b"k"]
    assert batch.priorities() == [3, 3]


def test_frame_without_payloads_reads_as_empty_ones() -> None:
    batch = rich()
    batch._regions = {}

    assert batch.payloads() == [b""] * 5


@pytest.mark.parametrize("lo", range(6))
@pytest.mark.parametrize("hi", range(6))
def test_view_is_a_slice_of_every_column(lo: int, hi: int) -> None:
    whole = rich()
    expected = list(whole.events())[lo:hi]

    view = whole.since(10 + lo).before(10 + hi)

    assert list(view.events()) == expected
    assert len(view) == len(expected)


@pytest.mark.parametrize(
    ("offset", "offsets"),
    [
        (0, [11, 13, 14]),
        (11, [11, 13, 14]),
        (12, [13, 14]),
        (14, [14]),
        (15, []),
        (99, []),
    ],
)
def test_part_behind_an_offset_skips_gaps(offset: int, offsets: list[int]) -> None:
    assert gapped().since(offset).offsets() == offsets


@pytest.mark.parametrize(
    ("offset", "offsets", "end"),
    [
        (0, [], 11),
        (11, [], 11),
        (13, [11], 13),
        (14, [11, 13], 14),
        (15, [11, 13, 14], 18),
        (99, [11, 13, 14], 18),
    ],
)
def test_part_before_an_offset_ends_where_the_next_event_is(
    offset: int, offsets: list[int], end: int
) -> None:
    part = gapped().before(offset)

    assert part.offsets() == offsets
    assert part.end_offset == end


def test_view_of_a_view_does_not_grow() -> None:
    view = rich().since(12).before(13)

    assert view.since(10).offsets() == [12]
    assert view.before(15).offsets() == [12]


def test_generated_ids_belong_to_the_offset_and_not_to_the_place() -> None:
    expected = [ids.event_id(BASE, delta) for delta in (1, 3, 4)]

    assert gapped().ids() == expected
    assert gapped().since(13).ids() == expected[1:]


def test_base_offset_is_that_of_the_first_event_in_view() -> None:
    assert rich().since(13).base_offset == 13
    assert gapped().base_offset == 11
    assert gapped().end_offset == 18


def test_taken_events_keep_their_offsets_and_ids() -> None:
    for batch in (rich(), gapped()):
        expected = [event for i, event in enumerate(batch.events()) if i in (0, 2)]

        taken = batch.take([0, 2])

        frame = frame_of(taken, batch.header.base_offset, batch.header.id_base)
        assert list(Batch.of("t", frame).events()) == expected


def test_body_is_the_frame_without_its_header() -> None:
    frame = frame_of(Columns([b"one", b"two"], 5), 0, bytes(16))

    batch = Batch.of("t", bytes(frame) + b"behind")

    assert batch.body == frame[64:]
    assert batch.dense


def test_bytes_that_are_no_frame_are_refused() -> None:
    with pytest.raises(ValueError, match="not a batch frame"):
        Batch.of("t", bytes(100))


@pytest.mark.parametrize("lo", [0, 1, 7, 8, 9, 20])
@pytest.mark.parametrize("hi", [20, 21, 24, 25, 40])
def test_nulls_are_where_they_were_in_any_part(lo: int, hi: int) -> None:
    parents = [None if index % 3 else f"p{index}" for index in range(40)]
    columns = Columns([b"x"] * 40, 5, parents=parents)
    whole = Batch.of("t", frame_of(columns, 0, BASE))

    part = Batch("t", whole.body, whole.header, lo, hi)

    assert part.parents() == parents[lo:hi]


def test_headers_of_a_view_are_those_of_its_events() -> None:
    headers = [{"a": "1"}, {}, {"b": "2", "c": "3"}, {"d": "4"}, {}]
    columns = Columns([b"x"] * 5, 5, headers=headers)
    whole = Batch.of("t", frame_of(columns, 0, bytes(16)))

    for lo in range(5):
        for hi in range(lo, 6):
            assert whole.since(lo).before(hi).headers() == headers[lo:hi]


def test_ids_by_time_say_the_time_of_each_event() -> None:
    columns = Columns([b"a", b"b", b"c"], [1000, 2000, 3000], ids=[None, "mine", None])
    columns.ids_by_time = True

    batch = Batch.of("t", frame_of(columns, 10, BASE))

    assert batch.ids_by_time
    expected = [ids.event_id_at(BASE, 0, 1000), "mine", ids.event_id_at(BASE, 2, 3000)]
    assert batch.ids() == expected
    assert batch.since(11).ids() == expected[1:]


def test_ids_by_time_stay_when_neighbours_are_taken_out() -> None:
    columns = Columns([b"a", b"b", b"c"], [1000, 2000, 3000])
    columns.ids_by_time = True
    whole = Batch.of("t", frame_of(columns, 10, BASE))

    some = Batch.of("t", frame_of(whole.take([0, 2]), 10, BASE))

    assert some.ids() == [whole.ids()[0], whole.ids()[2]]
