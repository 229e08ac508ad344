from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import datasource as spark

from penstock.errors import DataLost, UnknownTopic
from penstock.log import Log
from penstock.spark.ranges import TaskRange
from tests.unit.spark.scene import NEW_YEAR, append, filled, read, source

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def values(path: Path, **options: str) -> list[str]:
    return [row["value"].decode() for row in read(source(path=str(path), **options))]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return filled(tmp_path, t=10, u=3, empty=0)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"subscribe": "u"}, ["u-0", "u-1", "u-2"]),
        (
            {"subscribe": "u,t", "startingOffsets": '{"t": {"0": 9}, "u": {"0": -1}}'},
            ["t-9"],
        ),
        ({"subscribe": "t", "endingOffsets": '{"t": {"0": 2}}'}, ["t-0", "t-1"]),
        ({"subscribe": "t", "startingTimestamp": str(NEW_YEAR + 8)}, ["t-8", "t-9"]),
        ({"subscribe": "t", "endingTimestamp": str(NEW_YEAR + 1)}, ["t-0"]),
        ({"subscribe": "t", "startingTimestamp": str(NEW_YEAR + 99)}, []),
        (
            {
                "subscribe": "t",
                "startingOffsets": '{"t": {"0": 5}}',
                "endingOffsets": '{"t": {"0": 3}}',
            },
            [],
        ),
        ({"subscribePattern": "u|empty"}, ["u-0", "u-1", "u-2"]),
        ({"subscribe": "empty"}, []),
        ({"subscribePattern": "nothing.*"}, []),
        ({"subscribe": "u", "minPartitions": "3"}, ["u-0", "u-1", "u-2"]),
        ({"subscribe": "u,none", "failOnDataLoss": "false"}, ["u-0", "u-1", "u-2"]),
    ],
)
def test_what_is_read(data: Path, options: dict[str, str], wanted: list[str]) -> None:
    assert values(data, **options) == wanted


def test_a_topic_is_read_in_several_tasks(data: Path) -> None:
    one = source(path=str(data), subscribe="t", minPartitions="4")

    assert len(one.reader(one.schema()).partitions()) == 4
    assert values(data, subscribe="t", minPartitions="4") == [
        f"t-{n}" for n in range(10)
    ]


def test_records_of_a_task_can_be_limited(data: Path) -> None:
    one = source(path=str(data), subscribe="t", maxRecordsPerPartition="3")

    assert len(one.reader(one.schema()).partitions()) == 4


def test_a_topic_that_is_not_there(data: Path) -> None:
    with pytest.raises(UnknownTopic, match="topic none does not exist"):
        values(data, subscribe="none")


def test_an_offset_that_is_gone(data: Path) -> None:
    with Log.open(data) as log:
        log.trim("t", 5)
        log.sync()
    said = {"subscribe": "t", "startingOffsets": '{"t": {"0": 3}}'}

    with pytest.raises(DataLost, match="topic t: startingOffsets is 3, it has 5 to 10"):
        values(data, **said)
    assert values(data, **said, failOnDataLoss="false") == [
        f"t-{n}" for n in range(5, 10)
    ]


def test_events_that_go_between_planning_and_reading(data: Path) -> None:
    careful = source(path=str(data), subscribe="t")
    careless = source(path=str(data), subscribe="t", failOnDataLoss="false")
    readers = [one.reader(one.schema()) for one in (careful, careless)]
    parts = [reader.partitions()[0] for reader in readers]
    with Log.open(data) as log:
        log.trim("t", 5)
        log.sync()

    with pytest.raises(DataLost, match="topic t: offset 0 is not there any more"):
        list(readers[0].read(parts[0]))
    assert sum(one.num_rows for one in readers[1].read(parts[1])) == 5


def test_what_spark_makes_up_for_nothing_is_read_as_nothing(data: Path) -> None:
    one = source(path=str(data), subscribe="empty")

    assert list(one.reader(one.schema()).read(spark.InputPartition(None))) == []


@pytest.mark.parametrize(
    ("filters", "left", "offsets"),
    [
        ([spark.EqualTo(("topic",), "u")], 0, [0, 1, 2]),
        ([spark.GreaterThan(("offset",), 7)], 0, [8, 9]),
        ([spark.EqualTo(("topic",), "t"), spark.LessThan(("offset",), 2)], 0, [0, 1]),
        (
            [
                spark.EqualTo(("topic",), "t"),
                spark.GreaterThan(("timestamp",), MOMENT + timedelta(milliseconds=7)),
            ],
            1,
            [7, 8, 9],
        ),
        ([spark.LessThan(("timestamp",), MOMENT - timedelta(days=1))], 1, []),
        ([spark.GreaterThan(("timestamp",), MOMENT + timedelta(days=1))], 1, []),
        ([spark.EqualTo(("topic",), "none")], 0, []),
    ],
)
def test_filters_are_pushed(
    data: Path, filters: list[spark.Filter], left: int, offsets: list[int]
) -> None:
    said = {"path": str(data), "subscribe": "t,u", "columns": "topic,offset,timestamp"}
    one = source(**said, pushdown="true")
    reader = one.reader(one.schema())

    assert len(list(reader.pushFilters(filters))) == left

    again = pickle.loads(pickle.dumps(reader))
    found = [batch for part in again.partitions() for batch in again.read(part)]
    assert [n for batch in found for n in batch.column("offset").to_pylist()] == offsets


def test_filters_are_left_to_spark_unless_it_is_said(data: Path) -> None:
    one = source(path=str(data), subscribe="t")
    reader = one.reader(one.schema())
    filters = [spark.EqualTo(("offset",), 1)]

    assert list(reader.pushFilters(filters)) == filters
    assert reader.partitions() == [TaskRange("t", 0, 10, number=1)]


def test_spark_does_not_see_that_filters_can_be_pushed(data: Path) -> None:
    """Else it would refuse to read where the session does not push filters."""
    one = source(path=str(data), subscribe="t")
    reader = one.reader(one.schema())

    seen = getattr(reader.pushFilters, "__func__", None)

    assert seen is spark.DataSourceReader.pushFilters


def test_a_table_is_what_there_was_when_it_was_planned(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        append(log, "t", 3)
        one = source(path=str(tmp_path), subscribe="t")
        reader = one.reader(one.schema())
        parts = reader.partitions()

        append(log, "t", 3, start=3)

        assert sum(b.num_rows for part in parts for b in reader.read(part)) == 3
