from __future__ import annotations

from collections.abc import Callable
from operator import add
from typing import Any

import pytest

from penstock.errors import InvalidBatch
from penstock.log import frame_of
from penstock.log.batch import Batch
from penstock.log.columns import validity
from penstock.model import Event
from penstock.model import columns as columns_module
from penstock.model.columns import MAX_FRAME_BYTES, Columns

EVERYTHING = bytes.fromhex(
    # Header: eight columns, 320 bytes, three events from offset 7 on.
    "504e5342 01 00 0800 40010000 996b5cbf 0700000000000000 03000000 03000000"
    "e703000000000000 d007000000000000 000102030405060708090a0b0c0d0e0f"
    # Table: column, encoding, zero, bytes.
    "01 02 0000 18000000"  # TIMESTAMP plain
    "02 02 0000 03000000"  # PRIORITY plain
    "03 06 0000 1a000000"  # ID plain with validity
    "04 01 0000 01000000"  # KEY constant
    "05 02 0000 3b000000"  # HEADERS plain
    "06 02 0000 18000000"  # PAYLOAD plain
    "07 02 0000 13000000"  # PARENT plain
    "08 01 0000 02000000"  # PRODUCER constant
    "e803000000000000 e703000000000000 d007000000000000"  # 1000, 999, 2000
    "010203 0000000000"  # priorities, padding
    "05 00000000000000"  # validity of the ids: first and third
    "00000000 01000000 01000000 02000000 6163 000000000000"  # "a", null, "c"
    "6b 00000000000000"  # key "k" for all
    "00000000 01000000 01000000 03000000"  # headers: one, none, two entries
    "00000000 01000000 02000000 03000000 687879 0000000000"  # names h, x, y
    "00000000 01000000 01000000 03000000 767a7a 0000000000"  # values v, "", zz
    "00000000 05000000 05000000 08000000 68656c6c6f616263"  # "hello", "", "abc"
    "00000000 01000000 02000000 03000000 707172 0000000000"  # parents p, q, r
    "6d65 000000000000"  # producer "me" for all
)
GAPS = bytes.fromhex(
    # Header with the flag for gaps: three columns, 128 bytes, two events, span 6.
    "504e5342 01 01 0300 80000000 ccbdcbfc 0700000000000000 02000000 06000000"
    "0500000000000000 0500000000000000 00000000000000000000000000000000"
    "02 01 0000 01000000"  # PRIORITY constant
    "06 02 0000 12000000"  # PAYLOAD plain
    "09 02 0000 08000000"  # OFFSET plain
    "04 00000000000000"
    "00000000 01000000 02000000 00000000 6162 000000000000"
    "01000000 03000000"
)


def everything() -> Columns:
    return Columns(
        [b"hello", b"", b"abc"],
        [1000, 999, 2000],
        ids=["a", None, "c"],
        keys=[b"k", b"k", b"k"],
        priorities=[1, 2, 3],
        headers=[{"h": "v"}, {}, {"x": "", "y": "zz"}],
        parents=["p", "q", "r"],
        producer="me",
    )


def test_bytes_of_all_columns_are_those_of_the_table() -> None:
    assert frame_of(everything(), 7, bytes(range(16))) == EVERYTHING


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({}, [0, 0, 0]),
        ({"keys": [None, b"kk", b""]}, [0, 2, 0]),
        ({"keys": [b"kk"] * 3}, [2, 2, 2]),
        ({"ids": [None, "é", "abc"]}, [0, 2, 3]),
        ({"ids": ["é"] * 3}, [2, 2, 2]),
        ({"parents": ["p", None, "é"]}, [1, 0, 2]),
        ({"producers": ["m", "me", None]}, [1, 2, 0]),
        ({"headers": [{}, {"h": "é"}, {"a": "", "b": "c"}]}, [0, 8 + 3, 2 * 8 + 3]),
        ({"headers": [{"h": "é"}] * 3}, [8 + 3] * 3),
        ({"keys": [None, b"k", None], "ids": ["é"] * 3}, [2, 3, 2]),
        (
            {"priorities": [1, 2, 3], "expires": [0, 5, 9], "not_before": [1] * 3},
            [0] * 3,
        ),
    ],
)
def test_bytes_of_each_event_are_those_of_what_it_may_have_much_of(
    given: dict[str, list[Any]], more: list[int]
) -> None:
    columns = Columns([b"", b"abc", bytes(5000)], 1)
    for name, column in given.items():
        setattr(columns, name, column)

    assert columns.row_bytes() == [*map(add, [0, 3, 5000], more)]
    assert sum(columns.row_bytes()) <= columns.check()


def test_bytes_of_a_frame_with_gaps_are_those_of_the_table() -> None:
    columns = Columns([b"a", b"b"], 5, priorities=[4, 4])
    columns.offsets = [1, 3]
    columns.span = 6

    assert frame_of(columns, 7, bytes(16)) == GAPS


def test_span_reaches_the_last_offset_at_least() -> None:
    columns = Columns([b"a", b"b"])
    columns.offsets = [1, 3]

    batch = Batch.of("t", frame_of(columns, 10, bytes(16)))

    assert batch.offsets() == [11, 13]
    assert batch.end_offset == 14


def test_events_added_one_by_one_are_the_same_as_columns() -> None:
    batch = Batch.of("t", frame_of(everything(), 7, bytes(16)))
    columns = Columns()

    for event in batch.events():
        columns.add(event)

    again = Batch.of("t", frame_of(columns, 7, bytes(16)))
    assert list(again.events()) == list(batch.events())


def test_defaults_cost_no_column() -> None:
    event = Event(topic="t", offset=0, id="i", timestamp_ms=5, payload=b"p")
    columns = Columns()

    columns.add(event)

    assert (columns.keys, columns.priorities, columns.headers) == (None, None, None)
    assert (columns.parents, columns.producers) == (None, None)


def test_extending_fills_in_what_one_side_left_out() -> None:
    columns = Columns([b"1"], 5)
    columns.extend(everything())
    columns.extend(Columns([b"2"], 6))

    batch = Batch.of("t", frame_of(columns, 0, bytes(16)))

    assert batch.payloads() == [b"1", b"hello", b"", b"abc", b"2"]
    assert batch.timestamps() == [5, 1000, 999, 2000, 6]
    assert batch.keys() == [None, b"k", b"k", b"k", None]
    assert batch.priorities() == [0, 1, 2, 3, 0]
    assert batch.headers() == [{}, {"h": "v"}, {}, {"x": "", "y": "zz"}, {}]
    assert batch.parents() == [None, "p", "q", "r", None]
    assert batch.producers() == [None, "me", "me", "me", None]
    assert batch.ids()[1:4:2] == ["a", "c"]


def test_size_is_roughly_that_of_the_frame() -> None:
    columns = everything()

    size = columns.check()

    assert columns.size == size
    assert len(columns) == 3
    assert 30 < size < len(EVERYTHING)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("number of events", lambda: Columns()),
        ("payload size", lambda: Columns([b"x" * 101])),
        ("number of timestamps", lambda: Columns([b"x"], [1, 2])),
        ("number of ids", lambda: Columns([b"x"], ids=[])),
        ("number of keys", lambda: Columns([b"x"], keys=[b"a", b"b"])),
        ("number of priorities", lambda: Columns([b"x"], priorities=[1, 2])),
        ("number of headers", lambda: Columns([b"x"], headers=[])),
        ("number of parents", lambda: Columns([b"x"], parents=[])),
        ("payload", lambda: Columns(["text"])),  # type: ignore[list-item]
        ("payload", lambda: Columns([5])),  # type: ignore[list-item]
        ("payload", lambda: Columns([None])),  # type: ignore[list-item]
        ("timestamp", lambda: Columns([b"x"], 1 << 63)),
        ("timestamp", lambda: Columns([b"x"], [1.5])),  # type: ignore[list-item]
        ("priority", lambda: Columns([b"x"], priorities=[256])),
        ("priority", lambda: Columns([b"x"], priorities=[-1])),
        ("priority", lambda: Columns([b"x"], priorities=["1"])),  # type: ignore[list-item]
        ("key", lambda: Columns([b"x"], keys=["text"])),  # type: ignore[list-item]
        ("key", lambda: Columns([b"x"], keys=[""])),  # type: ignore[list-item]
        ("key", lambda: Columns([b"x"], keys=[0])),  # type: ignore[list-item]
        ("ids", lambda: Columns([b"x"], ids=["\ud800"])),
        ("ids", lambda: Columns([b"x"], ids=[5])),  # type: ignore[list-item]
        ("ids", lambda: Columns([b"x"], ids=[b""])),  # type: ignore[list-item]
        ("ids", lambda: Columns([b"x"], ids=[0])),  # type: ignore[list-item]
        ("parents", lambda: Columns([b"x"], parents=[b"p"])),  # type: ignore[list-item]
        ("producers", lambda: Columns([b"x"], producer=b"p")),  # type: ignore[arg-type]
        ("headers", lambda: Columns([b"x"], headers=[None])),  # type: ignore[list-item]
        ("headers", lambda: Columns([b"x"], headers=[{"a": 1}])),  # type: ignore[dict-item]
        ("headers", lambda: Columns([b"x"], headers=[{"a": "\ud800"}])),
    ],
)
def test_what_cannot_be_stored_is_refused_by_name(
    field: str, make: Callable[[], Columns]
) -> None:
    with pytest.raises(InvalidBatch) as caught:
        make().check(100)

    assert caught.value.field == field


@pytest.mark.parametrize(
    "columns",
    [
        Columns([b"x" * 100]),
        Columns([b"", b""], [-(1 << 63), (1 << 63) - 1]),
        Columns([b""], keys=[b""], ids=[""], parents=[""], producer="", headers=[{}]),
        Columns([b""], keys=[None], ids=[None], parents=[None]),
        Columns([b""] * 9, keys=[None] * 8 + [b"k"], priorities=[0] * 8 + [255]),
        Columns([b""], headers=[{"": ""}]),
    ],
)
def test_awkward_events_are_accepted_and_can_be_stored(columns: Columns) -> None:
    columns.check(100)

    batch = Batch.of("t", frame_of(columns, 0, bytes(16)))

    assert batch.payloads() == [bytes(payload) for payload in columns.payloads]
    assert batch.timestamps() == columns.timestamps
    assert batch.keys() == (columns.keys or [None] * len(columns))
    assert batch.priorities() == (columns.priorities or [0] * len(columns))
    assert batch.parents() == (columns.parents or [None] * len(columns))


def test_batch_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "MAX_BATCH_BYTES", 2048)

    with pytest.raises(InvalidBatch, match="batch size is 2800: must be at most 2048"):
        Columns([bytes(100)] * 20).check()


def test_checked_size_and_a_little_more_is_enough_for_the_frame() -> None:
    nothing: list[str | None] = [None] * 199
    columns = Columns(
        [b""] * 200,
        list(range(200)),
        ids=[*nothing, "x"],
        keys=[None] * 199 + [b"x"],
        headers=[{}] * 200,
        parents=[*nothing, "x"],
    )

    size = columns.check()

    room = MAX_FRAME_BYTES - columns_module.MAX_BATCH_BYTES
    assert len(frame_of(columns, 0, bytes(16))) <= size + room


OPTIONAL = ("ids", "keys", "priorities", "headers", "parents")


@pytest.mark.parametrize("indexes", [[], [1], [2, 0], [0, 1, 2]])
def test_picked_events_keep_everything_they_have(indexes: list[int]) -> None:
    columns = Columns([b"a", b"b", b"c"], [1, 2, 3], producer="me")
    columns.ids = ["x", None, "z"]
    columns.keys = [b"k", None, b"l"]
    columns.priorities = [7, 8, 9]
    columns.headers = [{"h": "1"}, {}, {"h": "3"}]
    columns.parents = [None, "p", None]

    picked = columns.pick(indexes)

    for name in ("payloads", "timestamps", "producers", *OPTIONAL):
        values = getattr(columns, name)
        assert getattr(picked, name) == [values[index] for index in indexes], name


def test_picking_adds_no_column() -> None:
    picked = Columns([b"a", b"b"], 5).pick([1])

    assert (picked.payloads, picked.timestamps) == ([b"b"], [5])
    assert (picked.ids, picked.keys, picked.priorities) == (None, None, None)
    assert (picked.headers, picked.parents, picked.producers) == (None, None, None)


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([None], "00"),
        (["a"], "01"),
        ([None, "a", None, "b"], "0a"),
        (["a"] * 9, "ff01"),
        ([None] * 8 + [""], "0001"),
    ],
)
def test_validity_has_the_least_significant_bit_first(
    values: list[str | None], bits: str
) -> None:
    assert validity(values).hex() == bits


def test_headers_that_all_events_have_are_stored_once():
    same = Columns([b"x"] * 1000, 1, headers=[{"colour": "blue"}] * 1000)
    mixed = Columns(
        [b"x"] * 1000, 1, headers=[{"colour": "blue"}] * 999 + [{"colour": "red"}]
    )

    once = Batch.of("t", frame_of(same, 5, bytes(16)))
    each = Batch.of("t", frame_of(mixed, 5, bytes(16)))

    assert once.common_headers() == {"colour": "blue"}
    assert once.headers() == [{"colour": "blue"}] * 1000
    assert once.header.length < each.header.length - 10_000
    assert each.common_headers() is None
    assert each.headers()[-1] == {"colour": "red"}


def test_headers_that_all_events_have_do_not_hide_each_other():
    batch = Batch.of(
        "t", frame_of(Columns([b"a", b"b"], 1, headers=[{"k": "v"}] * 2), 0, bytes(16))
    )

    first, second = batch.headers()
    first["k"] = "changed"

    assert second == {"k": "v"}
