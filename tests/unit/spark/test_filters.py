from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql import datasource as spark

from penstock.log import Batch, Columns, frame_of
from penstock.spark.columns import layout_of, schema_of
from penstock.spark.ddl import parse
from penstock.spark.filters import PushedFilters
from penstock.table.extent import Extent
from tests.unit.spark.scene import NEW_YEAR

EXTENT = Extent(start=10, end=50)
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
TOPIC, OFFSET, TIME = ("topic",), ("offset",), ("timestamp",)


def wanted(*, typed: str | None = None) -> PushedFilters:
    fields = None if typed is None else parse(typed)
    return PushedFilters.of(
        layout_of(schema_of(fields, None, include_headers=False), fields)
    )


@pytest.mark.parametrize(
    ("one", "span"),
    [
        (spark.EqualTo(OFFSET, 20), (20, 21)),
        (spark.GreaterThan(OFFSET, 20), (21, 50)),
        (spark.GreaterThanOrEqual(OFFSET, 20), (20, 50)),
        (spark.LessThan(OFFSET, 20), (10, 20)),
        (spark.LessThanOrEqual(OFFSET, 20), (10, 21)),
        (spark.LessThan(OFFSET, 5), (10, 10)),
        (spark.GreaterThan(OFFSET, 60), (50, 50)),
        (spark.EqualTo(TOPIC, "t"), (10, 50)),
        (spark.EqualTo(TOPIC, "u"), (10, 10)),
        (spark.In(TOPIC, ("u", "t")), (10, 50)),
        (spark.In(TOPIC, ("u", None)), (10, 10)),
        (spark.IsNotNull(OFFSET), (10, 50)),
        (spark.IsNotNull(("id",)), (10, 50)),
    ],
)
def test_conditions_that_spark_need_not_look_at(
    one: spark.Filter, span: tuple[int, int]
) -> None:
    events = wanted()

    assert events.push([one]) == []
    assert events.span("t", EXTENT) == span


@pytest.mark.parametrize(
    ("one", "span"),
    [
        (spark.In(OFFSET, (30, 20, None)), (20, 31)),
        (spark.In(OFFSET, (None,)), (10, 10)),
        (spark.EqualNullSafe(OFFSET, 20), (10, 50)),
        (spark.GreaterThan(OFFSET, None), (10, 50)),
        (spark.Not(spark.EqualTo(TOPIC, "t")), (10, 50)),
        (spark.StringStartsWith(TOPIC, "u"), (10, 50)),
        (spark.EqualTo(("key",), b"k"), (10, 50)),
        (spark.IsNotNull(("key",)), (10, 50)),
        (spark.IsNull(OFFSET), (10, 50)),
        (spark.EqualTo(("partition",), 1), (10, 50)),
        (spark.EqualTo(("offset", "x"), 1), (10, 50)),
        (spark.GreaterThan(TIME, "noon"), (10, 50)),
    ],
)
def test_conditions_that_spark_looks_at_again(
    one: spark.Filter, span: tuple[int, int]
) -> None:
    events = wanted()

    assert events.push([one]) == [one]
    assert events.span("t", EXTENT) == span


def test_conditions_hold_together() -> None:
    events = wanted()

    left = events.push(
        [
            spark.In(TOPIC, ("t", "u")),
            spark.EqualTo(TOPIC, "t"),
            spark.GreaterThan(OFFSET, 15),
            spark.LessThan(OFFSET, 30),
            spark.LessThan(OFFSET, 40),
        ]
    )

    assert left == []
    assert events.span("t", EXTENT) == (16, 30)
    assert events.span("u", EXTENT) == (10, 10)


def batch(first: int, last: int) -> Batch:
    events = Columns([b"", b""], [NEW_YEAR + first, NEW_YEAR + last])
    return Batch.of("t", frame_of(events, 0, bytes(16)))


def moment(milliseconds: float) -> datetime:
    return MOMENT + timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize(
    ("one", "since", "until"),
    [
        (spark.GreaterThan(TIME, moment(5)), 5, None),
        (spark.GreaterThanOrEqual(TIME, moment(5.5)), 5, None),
        (spark.LessThan(TIME, moment(5)), None, 5),
        (spark.LessThanOrEqual(TIME, moment(5.999)), None, 5),
        (spark.EqualTo(TIME, moment(5)), 5, 5),
        (spark.LessThan(TIME, moment(5).replace(tzinfo=None)), None, 5),
        (
            spark.LessThan(TIME, moment(5).astimezone(timezone(timedelta(hours=3)))),
            None,
            5,
        ),
    ],
)
def test_times_leave_out_frames_and_spark_looks_again(
    one: spark.Filter, since: int | None, until: int | None
) -> None:
    events = wanted()

    assert events.push([one]) == [one]
    assert events.has(batch(0, 4)) == (since is None)
    assert events.has(batch(6, 9)) == (until is None)
    assert events.has(batch(0, 9))


def test_a_field_of_the_payload_is_not_the_column_of_that_name() -> None:
    events = wanted(typed="offset BIGINT")
    field, own = spark.EqualTo(OFFSET, 20), spark.EqualTo(("_offset",), 20)

    assert events.push([field]) == [field]
    assert events.span("t", EXTENT) == (10, 50)
    assert events.push([own]) == []
    assert events.span("t", EXTENT) == (20, 21)
