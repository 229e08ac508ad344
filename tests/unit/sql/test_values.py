"""Values that Python has no type for, and those that it has."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.errors import InvalidQuery
from penstock.sql.engine import values


def found(expression: str) -> Any:
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        batch = duck.sql(f"SELECT {expression}").to_arrow_reader().read_next_batch()
        return values(batch.column(0))[0]


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("to_timestamp(1700000000000)", "55840-11-08T22:13:20.000Z"),
        ("'infinity'::timestamp", "infinity"),
        ("'-infinity'::timestamptz", "-infinity"),
        ("'infinity'::date", "infinity"),
        ("'290000-01-01'::date", "290000-01-01"),
        ("'0044-03-15 (BC)'::date", "-0043-03-15"),
        ("timestamp_s '290000-02-28 01:02:03'", "290000-02-28T01:02:03.000"),
        ("'12000-02-29 23:59:59.5'::timestamp", "12000-02-29T23:59:59.500"),
        (
            "timestamp_ns '2020-01-01 00:00:00.123456789'",
            "2020-01-01T00:00:00.123456789",
        ),
        ("time_ns '10:00:00.123456789'", "10:00:00.123456789"),
    ],
)
def test_what_no_datetime_holds_is_text(expression: str, text: str) -> None:
    assert found(expression) == text


def test_what_lies_beside_it_stays_as_it_is() -> None:
    row = "{'at': 'infinity'::date, 'l': [date '2020-01-02', '290000-01-01', NULL]}"

    assert found(row) == {
        "at": "infinity",
        "l": [date(2020, 1, 2), "290000-01-01", None],
    }
    assert found("map {'a': 'infinity'::date}") == {"a": "infinity"}
    assert found("array_value('infinity'::date, NULL)") == ["infinity", None]
    assert found("union_value(x := 'infinity'::date)") == "infinity"
    assert found("timestamp '2020-01-01'") == datetime(2020, 1, 1)


def test_a_map_loses_no_entry() -> None:
    twice = pa.MapArray.from_arrays([0, 2, 3], ["a", "a", "b"], [1, 2, 3])

    assert values(twice) == [[("a", 1), ("a", 2)], {"b": 3}]
    assert found("map {[1]: 2, [2]: 3}") == [([1], 2), ([2], 3)]


def test_what_cannot_be_shown_at_all_is_refused() -> None:
    broken = pa.array([b"\xff"]).view(pa.string())

    with pytest.raises(InvalidQuery, match="type string cannot be shown"):
        values(broken)
