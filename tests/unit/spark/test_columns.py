from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark

from penstock.errors import InvalidOption
from penstock.log import Batch, Columns, frame_of
from penstock.model.event import TIMES
from penstock.spark.columns import arrow_schema, layout_of, schema_of
from penstock.spark.ddl import parse
from penstock.table import columns, naming
from penstock.table.columns import Builder
from tests.unit.spark.scene import NEW_YEAR

KAFKA = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
OURS = ["id", "priority", "parent", "producer", *(one.table for one in TIMES)]
TYPED = parse("user STRING, timestamp TIMESTAMP")


def batch(count: int, base: int = 0, **said: Any) -> Batch:
    payloads = said.pop("payloads", [f"p{n}".encode() for n in range(count)])
    events = Columns(payloads, NEW_YEAR + base, **said)
    return Batch.of("t", frame_of(events, base, bytes(16)))


def built(schema: spark.StructType, *batches: Batch, typed: Any = None) -> pa.Table:
    builder = Builder(layout_of(schema, typed), "t")
    found = list(builder.record_batches(batches))
    assert all(one.schema == arrow_schema(schema) for one in found)
    return pa.Table.from_batches(found)


def test_columns_are_those_of_kafka_and_some_more() -> None:
    assert schema_of(None, None, include_headers=False).names == KAFKA + OURS
    assert schema_of(None, None, include_headers=True).names == [
        *KAFKA,
        "headers",
        *OURS,
    ]


def test_everything_of_an_event_is_a_row() -> None:
    schema = schema_of(None, None, include_headers=True)
    one = batch(
        1,
        base=5,
        ids=["me"],
        keys=[b"k"],
        priorities=[200],
        headers=[{"a": "1", "b": "ä"}],
        parents=["mum"],
        producer="cli",
    )

    assert built(schema, one).to_pylist() == [
        {
            "key": b"k",
            "value": b"p0",
            "topic": "t",
            "partition": 0,
            "offset": 5,
            "timestamp": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5),
            "timestampType": 0,
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "b", "value": "ä".encode()},
            ],
            "id": "me",
            "priority": 200,
            "parent": "mum",
            "producer": "cli",
            **dict.fromkeys([one.table for one in TIMES]),
        }
    ]


def test_what_an_event_leaves_out_is_null_or_empty() -> None:
    schema = schema_of(None, None, include_headers=True)

    row = built(schema, batch(1)).to_pylist()[0]

    assert (row["key"], row["parent"], row["producer"]) == (None, None, None)
    assert (row["headers"], row["priority"]) == ([], 0)
    assert row["id"] == "00000000-0000-0000-0000-000000000000"


def test_small_frames_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "CHUNK_ROWS", 10)
    schema = schema_of(None, ["offset", "value"], include_headers=False)
    builder = Builder(layout_of(schema, None), "t")

    found = list(builder.record_batches(batch(4, base=4 * n) for n in range(6)))

    assert [one.num_rows for one in found] == [12, 12]
    offsets = pa.Table.from_batches(found)["offset"].to_pylist()
    assert offsets == list(range(24))


def test_large_events_are_not_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "CHUNK_BYTES", 500)
    schema = schema_of(None, ["value"], include_headers=False)
    builder = Builder(layout_of(schema, None), "t")

    found = builder.record_batches(batch(1, n, payloads=[b"x" * 900]) for n in range(3))

    assert [one.num_rows for one in found] == [1, 1, 1]


def test_frames_that_differ_in_their_columns_are_one_table() -> None:
    schema = schema_of(None, None, include_headers=True)

    table = built(
        schema,
        batch(2, keys=[b"a", None], headers=[{"x": "y"}, {}]),
        batch(2, base=2),
        batch(3, base=4, keys=[None, b"b", None], priorities=[1, 2, 3]).since(5),
        batch(2, base=7, headers=[{}, {"p": "q", "r": "s"}]).since(8),
    )

    assert table["offset"].to_pylist() == [0, 1, 2, 3, 5, 6, 8]
    assert table["key"].to_pylist() == [b"a", None, None, None, b"b", None, None]
    assert table["priority"].to_pylist() == [0, 0, 0, 0, 2, 3, 0]
    assert [len(one) for one in table["headers"].to_pylist()] == [1, 0, 0, 0, 0, 0, 2]


def test_only_what_is_wanted_is_made() -> None:
    schema = schema_of(None, ["value", "offset"], include_headers=False)

    assert layout_of(schema, None).kept == ["offset", "payload"]
    assert built(schema, batch(2)).to_pylist() == [
        {"value": b"p0", "offset": 0},
        {"value": b"p1", "offset": 1},
    ]


def test_columns_that_are_not_stored_have_as_many_rows() -> None:
    schema = schema_of(None, ["topic", "partition"], include_headers=False)

    assert built(schema, batch(2)).to_pylist() == [{"topic": "t", "partition": 0}] * 2


def test_nothing_is_no_batch() -> None:
    schema = schema_of(None, None, include_headers=False)

    assert list(Builder(layout_of(schema, None), "t").record_batches([])) == []


def test_payloads_are_columns_beside_those_of_the_event() -> None:
    schema = schema_of(TYPED, None, include_headers=False)
    good = b'{"user": "ann", "timestamp": "2020-01-01T00:00:00Z"}'

    rows = built(schema, batch(2, payloads=[good, b"no"]), typed=TYPED).to_pylist()

    assert schema.names == [
        "user",
        "timestamp",
        "_corrupt",
        "key",
        "topic",
        "partition",
        "offset",
        "_timestamp",
        "timestampType",
        *OURS,
    ]
    assert rows[0]["user"] == "ann"
    assert rows[0]["timestamp"].year == 2020
    assert rows[0]["_timestamp"].year == 2026
    assert [row["_corrupt"] for row in rows] == [None, b"no"]
    assert rows[1]["user"] is None


@pytest.mark.parametrize(
    ("fields", "own", "name"),
    [
        ("id STRING", "id", "_id"),
        ("id STRING, _id STRING", "id", "__id"),
        ("topic STRING, _topic STRING, __topic STRING", "topic", "___topic"),
        ("ID STRING, Timestamp STRING", "id", "_id"),
        ("Id STRING, _ID STRING", "id", "__id"),
        ("_corrupt STRING", "_corrupt", "__corrupt"),
        ("_Corrupt STRING, x INT", "_corrupt", "__corrupt"),
    ],
)
def test_no_field_of_a_payload_is_replaced(fields: str, own: str, name: str) -> None:
    typed = parse(fields)
    schema = schema_of(typed, None, include_headers=True)
    payload = json.dumps(
        {field: "mine" for field in typed.fieldNames() if field != "x"}
    )

    (row,) = built(
        schema, batch(1, payloads=[payload.encode()]), typed=typed
    ).to_pylist()

    assert layout_of(schema, typed).name_of(own) == name
    assert row[typed.fieldNames()[0]] == "mine"
    assert row[name] != "mine"
    lower = [one.lower() for one in schema.names]
    assert len(set(lower)) == len(lower)


def test_the_payload_itself_can_be_chosen_too() -> None:
    schema = schema_of(TYPED, ["value", "user"], include_headers=False)

    rows = built(schema, batch(1, payloads=[b'{"user": "u"}']), typed=TYPED).to_pylist()

    assert rows == [{"value": b'{"user": "u"}', "user": "u"}]


def test_what_does_not_fit_can_be_chosen_alone() -> None:
    """Then all fields are looked at; else only those that are wanted."""
    payloads = [b'{"user": "u", "timestamp": "soon"}', b'{"user": "v"}']
    one = batch(2, payloads=payloads)

    corrupt = schema_of(TYPED, ["_corrupt"], include_headers=False)
    user = schema_of(TYPED, ["user"], include_headers=False)

    assert built(corrupt, one, typed=TYPED)["_corrupt"].to_pylist() == [
        payloads[0],
        None,
    ]
    assert built(user, one, typed=TYPED)["user"].to_pylist() == ["u", "v"]


def test_not_null_is_made_as_it_is_wanted() -> None:
    schema = spark.StructType([spark.StructField("offset", spark.LongType(), False)])

    assert built(schema, batch(1)).to_pylist() == [{"offset": 0}]


def test_a_column_that_there_is_not() -> None:
    with pytest.raises(InvalidOption, match=r"columns is 'ofset': .*mean offset\?"):
        schema_of(None, ["ofset"], include_headers=False)
    with pytest.raises(InvalidOption, match="columns is 'headers'"):
        schema_of(None, ["headers"], include_headers=False)
    with pytest.raises(InvalidOption, match="schema is 'user'"):
        layout_of(parse("user STRING"), None)


def test_a_column_of_another_type() -> None:
    with pytest.raises(InvalidOption, match="schema is 'offset int': must be bigint"):
        layout_of(parse("offset INT"), None)
    with pytest.raises(InvalidOption, match="schema is 'user int': must be string"):
        layout_of(parse("user INT"), TYPED)


INSIDE = spark.StructType([spark.StructField("b", spark.LongType(), False)])


@pytest.mark.parametrize(
    "field",
    [
        spark.StructField("key", spark.BinaryType(), False),
        spark.StructField("parent", spark.StringType(), False),
        spark.StructField("_corrupt", spark.BinaryType(), False),
        spark.StructField("user", spark.StringType(), False),
        spark.StructField("a", INSIDE),
    ],
)
def test_a_column_that_may_be_null_is_not_said_not_to(field: spark.StructField) -> None:
    typed = parse("user STRING, a STRUCT<b: BIGINT>")

    with pytest.raises(InvalidOption, match="NOT NULL': must be without NOT NULL"):
        layout_of(spark.StructType([field]), typed)


def test_a_layout_travels() -> None:
    layout = layout_of(schema_of(TYPED, None, include_headers=True), TYPED)

    assert pickle.loads(pickle.dumps(layout)) == layout
    assert layout.name_of("timestamp") == "_timestamp"
    assert layout.name_of("value") is None


def test_every_column_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "spark.md").read_text()

    assert [
        name for name in [*naming.NAMES, "_corrupt"] if f"| `{name}`" not in page
    ] == []
