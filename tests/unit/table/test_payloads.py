from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.columns import arrow_schema
from penstock.spark.ddl import parse
from penstock.table.payloads import PayloadDecoder, has_map


def decoded(schema: str, *payloads: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """The rows, maps as dicts, and which payloads fit none."""
    fields = list(arrow_schema(parse(schema)))
    columns, bad = PayloadDecoder(fields).decode(pa.array(payloads, pa.binary()))
    for column, field in zip(columns, fields, strict=True):
        assert column.type == field.type
        column.validate(full=True)
    table = pa.table(columns, [one.name for one in fields])
    rows = table.to_pylist(maps_as_pydicts="strict")
    return rows, [] if bad is None else [n for n, one in enumerate(bad) if one.as_py()]


def test_objects_become_maps() -> None:
    rows, bad = decoded(
        "m MAP<STRING, BIGINT>, n INT",
        b'{"m": {"a": 1, "b": null}, "n": 1}',
        b'{"n": 2, "m": {}}',
        b'{"m": null}',
        b"{}",
    )

    assert rows == [
        {"m": {"a": 1, "b": None}, "n": 1},
        {"m": {}, "n": 2},
        {"m": None, "n": None},
        {"m": None, "n": None},
    ]
    assert bad == []


def test_values_of_maps_are_of_any_type() -> None:
    rows, bad = decoded(
        "m MAP<STRING, "
        "STRUCT<on: DATE, at: TIMESTAMP, d: DECIMAL(4, 2), a ARRAY<INT>>>",
        b'{"m": {"x": {"on": "2026-01-31", "at": "2026-01-31T12:00:00Z", "d": "1.5"}}}',
        b'{"m": {"y": {"a": [1, null]}, "z": null}}',
    )

    nothing = {"on": None, "at": None, "d": None, "a": None}
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    first = {"on": date(2026, 1, 31), "at": moment, "d": Decimal("1.50"), "a": None}
    assert rows[0]["m"] == {"x": first}
    assert rows[1]["m"] == {"y": {**nothing, "a": [1, None]}, "z": None}
    assert bad == []


def test_maps_may_be_anywhere() -> None:
    payloads = [
        {"a": [{"k": {"x": 1}}, None, {}], "s": {"m": {"y": [2]}, "n": 3}},
        {"a": [], "s": None},
        {"s": {"n": 4}},
    ]

    rows, bad = decoded(
        "a ARRAY<MAP<STRING, MAP<STRING, INT>>>, "
        "s STRUCT<m: MAP<STRING, ARRAY<INT>>, n: INT>",
        *(json.dumps(one).encode() for one in payloads),
    )

    assert rows == [
        payloads[0],
        payloads[1],
        {"a": None, "s": {"m": None, "n": 4}},
    ]
    assert bad == []


UNFIT = {
    "no JSON": b"hello",
    "nothing": b"",
    "a list": b"[1]",
    "null": b"null",
    "torn": b'{"m": {"a": 1}',
    "two": b'{"m": {}}{"m": {}}',
    "no map": b'{"m": [1]}',
    "text": b'{"m": "a"}',
    "another value": b'{"m": {"a": 1, "b": "2"}}',
    "too large a value": b'{"m": {"a": 99999999999}}',
    "another field": b'{"m": {"a": 1}, "n": "x"}',
    "another value in a list": b'{"a": [{"k": 1}, {"k": []}]}',
    "no list": b'{"a": {"k": 1}}',
    "another value in a struct": b'{"s": {"m": {"a": true}}}',
    "no struct": b'{"s": 5}',
    "not UTF-8": b'{"m": {"\xff": 1}}',
    "not UTF-8 elsewhere": b'{"other": "\xff"}',
    "half a pair": b'{"m": {"\\ud800": 1}}',
    "deep": b'{"m": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
}


@pytest.mark.parametrize("payload", UNFIT.values(), ids=UNFIT)
def test_a_payload_that_does_not_fit_stands_alone(payload: bytes) -> None:
    good = b'{"m": {"g": 1}, "n": 2, "a": [{"h": 3}], "s": {"m": {"i": 4}}}'

    rows, bad = decoded(
        "m MAP<STRING, INT>, n INT, a ARRAY<MAP<STRING, INT>>, "
        "s STRUCT<m: MAP<STRING, INT>>",
        *(good, payload, good),
    )

    assert bad == [1]
    assert rows[1] == {"m": None, "n": None, "a": None, "s": None}
    assert rows[0] == rows[2] == json.loads(good)


def test_nothing_that_fits_is_a_table_of_nulls() -> None:
    rows, bad = decoded("m MAP<STRING, DATE>", b"x", b"[]")

    assert (rows, bad) == ([{"m": None}] * 2, [0, 1])


def test_no_payloads_are_no_rows() -> None:
    assert decoded("m MAP<STRING, STRUCT<a: MAP<STRING, INT>>>, n INT") == ([], [])


@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "m": st.none()
                | st.dictionaries(st.text(), st.none() | st.integers(-9, 9)),
                "a": st.none()
                | st.lists(st.none() | st.dictionaries(st.text(), st.booleans())),
            },
        )
    )
)
def test_what_is_written_is_read(documents: list[dict[str, Any]]) -> None:
    payloads = [json.dumps(one).encode() for one in documents]

    rows, bad = decoded("m MAP<STRING, INT>, a ARRAY<MAP<STRING, BOOLEAN>>", *payloads)

    assert bad == []
    assert rows == [{"m": one.get("m"), "a": one.get("a")} for one in documents]


def test_maps_are_found_wherever_they_are() -> None:
    one = pa.map_(pa.string(), pa.int64())

    assert has_map(one)
    assert has_map(pa.list_(pa.struct([("a", one)])))
    assert not has_map(pa.list_(pa.string()))
