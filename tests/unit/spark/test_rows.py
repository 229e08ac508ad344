from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadRow, InvalidName, UnfitFrame
from penstock.spark import rows
from penstock.spark.rows import RowBatch, RowLayout

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SPARK = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int32(): "int",
    pa.int64(): "bigint",
    PAIRS: "array<struct<key:string,value:binary>>",
    pa.map_(pa.string(), pa.string()): "map<string,string>",
    pa.map_(pa.string(), pa.binary()): "map<string,binary>",
}


def pieces(
    topic: str | None = "t", first_row: int = 0, **columns: pa.Array
) -> list[RowBatch]:
    batch = pa.record_batch(columns)
    types = {name: SPARK[column.type] for name, column in columns.items()}
    return list(RowLayout.of(types.items(), topic).pieces(batch, 3, first_row))


def text(*values: str | None) -> pa.Array:
    return pa.array(values, pa.string())


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def refusal(**columns: Any) -> BadRow:
    with pytest.raises(BadRow) as caught:
        pieces(**columns)
    return caught.value


@pytest.mark.parametrize("value", [text("a", "ö", ""), binary(b"a", b"\xc3\xb6", b"")])
def test_values_are_bytes_or_text(value: pa.Array) -> None:
    (piece,) = pieces(value=value)

    assert piece.topic == "t"
    assert piece.payloads == [b"a", "ö".encode(), b""]
    assert piece.rows.tolist() == [0, 1, 2]
    optional = (
        piece.columns["keys"],
        piece.columns["ids"],
        piece.columns["priorities"],
        piece.columns["headers"],
        piece.columns["parents"],
    )
    assert set(optional) == {None}


def test_every_column_says_its_part() -> None:
    (piece,) = pieces(
        value=text("a", "b"),
        key=text("k", None),
        id=text(None, "my id"),
        parent=text("p", None),
        priority=pa.array([None, 255], pa.int32()),
        headers=pa.array([None, [{"key": "h", "value": b"1"}]], PAIRS),
    )

    assert piece.columns["keys"] == [b"k", None]
    assert piece.columns["ids"] == [None, "my id"]
    assert piece.columns["parents"] == ["p", None]
    assert piece.columns["priorities"] == [0, 255]
    assert piece.columns["headers"] == [{}, {"h": "1"}]


def test_a_column_of_nulls_says_nothing() -> None:
    (piece,) = pieces(
        value=text("a"),
        key=binary(None),
        id=text(None),
        priority=pa.array([None], pa.int32()),
        headers=pa.array([None], PAIRS),
    )

    assert (
        piece.columns["keys"],
        piece.columns["ids"],
        piece.columns["priorities"],
        piece.columns["headers"],
    ) == (None,) * 4


@pytest.mark.parametrize(
    "type_",
    [PAIRS, pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.binary())],
)
def test_headers_are_pairs_or_a_map(type_: pa.DataType) -> None:
    value = "1" if type_ != PAIRS and type_.item_type == pa.string() else b"1"
    given: Any = [("a", value), ("b", value)]
    if type_ == PAIRS:
        given = [{"key": name, "value": value} for name, _ in given]
    column = pa.array([[], given, None, given[:1]], type_)

    (piece,) = pieces(value=text("0", "1", "2", "3"), headers=column)

    assert piece.columns["headers"] == [{}, {"a": "1", "b": "1"}, {}, {"a": "1"}]


def test_rows_go_to_the_topics_they_name() -> None:
    batch = pa.record_batch(
        {
            "value": text("0", "1", "2"),
            "topic": text("b", "a", "b"),
            "key": text(None, "k", None),
        }
    )
    frame = RowLayout.of([(name, "string") for name in ("value", "topic", "key")], None)

    b, a = frame.pieces(batch, 0, 10)

    assert (b.topic, b.payloads, b.rows.tolist()) == ("b", [b"0", b"2"], [10, 12])
    assert (a.topic, a.payloads, a.columns["keys"]) == ("a", [b"1"], [b"k"])


def test_the_option_topic_wins_over_the_column() -> None:
    batch = pa.record_batch({"value": text("0"), "topic": text(None)})
    frame = RowLayout.of({"value": "string", "topic": "string"}.items(), "mine")

    assert [piece.topic for piece in frame.pieces(batch, 0, 0)] == ["mine"]


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    most=st.integers(1, 60),
    events=st.integers(1, 8),
)
def test_pieces_are_bounded_and_together_the_whole(
    sizes: list[int], most: int, events: int
) -> None:
    payloads = [bytes([65 + n % 26]) * size for n, size in enumerate(sizes)]
    headers = [[{"key": "n", "value": str(n).encode()}] for n in range(len(sizes))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "PART_BYTES", most)
        patch.setattr(rows, "PART_EVENTS", events)

        found = pieces(value=binary(*payloads), headers=pa.array(headers, PAIRS))

    assert [one for piece in found for one in piece.payloads] == payloads
    numbers = [row for piece in found for row in piece.rows.tolist()]
    assert numbers == list(range(len(sizes)))
    assert [one for piece in found for one in piece.columns["headers"] or ()] == [
        {"n": str(n)} for n in range(len(sizes))
    ]
    for piece in found:
        assert len(piece.payloads) <= events
        assert len(piece.payloads) == 1 or sum(map(len, piece.payloads)) <= most


def test_no_rows_are_no_pieces() -> None:
    assert pieces(value=text()) == []


BAD = {
    "a null value": ({"value": text("a", None)}, 1, "value None: it may not be null"),
    "a priority too high": (
        {"value": text("a", "b"), "priority": pa.array([0, 256], pa.int32())},
        1,
        "priority 256: must be from 0 to 255",
    ),
    "a priority below zero": (
        {"value": text("a"), "priority": pa.array([-1], pa.int64())},
        0,
        "priority -1: must be from 0 to 255",
    ),
    "an empty id": ({"value": text("a", "b"), "id": text(None, "")}, 1, "it is empty"),
    "a long id": ({"value": text("a"), "id": text("x" * 257)}, 0, "at most 256 bytes"),
    "an id with a line end": (
        {"value": text("a"), "id": text("x\n")},
        0,
        r"id 'x\n': it cannot be printed",
    ),
    "a parent in spaces": (
        {"value": text("a"), "parent": text(" x")},
        0,
        "parent ' x': it begins or ends with a space",
    ),
    "a header that is no text": (
        {
            "value": text("a", "b", "c"),
            "headers": pa.array(
                [[("a", b"1")], [], [("b", b"\xff")]], pa.map_(pa.string(), pa.binary())
            ),
        },
        2,
        r"headers b'\xff': a value is not UTF-8",
    ),
    "a header without a value": (
        {
            "value": text("a", "b"),
            "headers": pa.array([[], [{"key": "k", "value": None}]], PAIRS),
        },
        1,
        "headers 'k': neither name nor value may be null",
    ),
    "a header twice": (
        {
            "value": text("a"),
            "headers": pa.array([[{"key": "k", "value": b"1"}] * 2], PAIRS),
        },
        0,
        "headers ['k', 'k']: a name is there twice",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named(case: str) -> None:
    columns, row, said = BAD[case]

    error = refusal(first_row=100, **columns)

    assert (error.partition, error.row) == (3, 100 + row)
    assert said in str(error)


def test_a_bad_topic_is_named_with_its_row() -> None:
    frame = RowLayout.of({"value": "string", "topic": "string"}.items(), None)
    for topic, said in ((None, "may not be null"), ("a\0", "NUL"), ("", "is empty")):
        batch = pa.record_batch({"value": text("0", "1"), "topic": text("t", topic)})

        with pytest.raises(BadRow, match=f"row 1 of partition 0.*{said}"):
            list(frame.pieces(batch, 0, 0))


FRAMES = {
    "no value": ({"key": "string"}, "t", "column value is missing"),
    "no topic": ({"value": "string"}, None, "column topic is missing"),
    "a number as value": (
        {"value": "int"},
        "t",
        "column value is int: must be binary or string",
    ),
    "a mistyped name": (
        {"value": "string", "Priorty": "int"},
        "t",
        "column Priorty is not known: did you mean priority?",
    ),
    "a name twice": (
        {"Value": "string", "value": "string"},
        "t",
        "column value is there twice: names have no case",
    ),
    "headers of numbers": (
        {"value": "string", "headers": "map<string,int>"},
        "t",
        "column headers is map<string,int>: must be array<struct<key:string",
    ),
}


@pytest.mark.parametrize("case", FRAMES)
def test_a_frame_that_does_not_fit_is_refused(case: str) -> None:
    types, topic, said = FRAMES[case]

    with pytest.raises(UnfitFrame) as caught:
        RowLayout.of(types.items(), topic)

    assert said in str(caught.value)


def test_a_topic_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(InvalidName):
        RowLayout.of({"value": "string"}.items(), "")


def test_columns_of_the_source_and_others_are_left_out() -> None:
    types = {"Value": "binary", "offset": "bigint", "timestampType": "int"}

    assert RowLayout.of({**types, "whatever": "date"}.items(), "t").places == {
        "value": 0
    }
