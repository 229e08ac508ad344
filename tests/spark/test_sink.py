"""The sink on a real Spark and a real broker: every row once, whatever fails."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf, when
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from penstock.client import connect
from penstock.errors import ServerRefused
from penstock.log import Batch
from penstock.spark.sink import sink_options
from penstock.spark.source import PenstockSource
from penstock.spark.writer import CommitMessages, StreamWriter
from tests.serving import Serving, serving

pytestmark = pytest.mark.spark

WAIT_S = 120


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker")) as server:
        yield server


# Streams


def test_a_stream_becomes_a_topic(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, "a", 1000)

    query = start(
        read(spark, broker, "a", maxOffsetsPerTrigger=400), broker, tmp_path, topic="b"
    )

    assert query.awaitTermination(WAIT_S)
    assert ids(broker, "b") == once(range(1000))
    assert payloads(broker, "b") == payloads(broker, "a")
    with connect(broker.data) as client:
        sinks: Any = client.ask("sinks")
    (sink,) = [one for one in sinks["sinks"] if one["query"] == f"spark:{query.id}"]
    assert (sink["epoch"], sink["staged_bytes"]) == (2, 0)


def test_tasks_that_fail_and_are_tried_again_store_once(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    failed = tmp_path / "failed"
    publish(broker, "rough", 30_000)
    frame = read(spark, broker, "rough", minPartitions=2)
    even_and_odd = frame.select(
        failing_once(failed, 14_000, 29_000)(col("id")).alias("id"),
        "value",
        when(col("id").cast("int") % 2 == 0, "even").otherwise("odd").alias("topic"),
    )

    query = start(even_and_odd, broker, tmp_path / "checkpoint")

    assert query.awaitTermination(WAIT_S)
    assert sorted(failed.read_text().split()) == ["14000", "29000"]
    assert ids(broker, "even") == once(range(0, 30_000, 2))
    assert ids(broker, "odd") == once(range(1, 30_000, 2))


def test_an_epoch_that_spark_repeats_is_stored_once(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    def raise_afterwards(commit: Callable[[], None]) -> None:
        commit()
        raise OSError("it was done, but nobody will know")

    form = faulty(spark, raise_afterwards, tmp_path / "marker")
    publish(broker, "repeated", 1000)
    frame = read(spark, broker, "repeated", maxOffsetsPerTrigger=400)

    query = start(frame, broker, tmp_path / "checkpoint", form, topic="repeats")
    with pytest.raises(StreamingQueryException, match="nobody will know"):
        query.awaitTermination(WAIT_S)
    before = ids(broker, "repeats")
    query = start(frame, broker, tmp_path / "checkpoint", form, topic="repeats")

    assert query.awaitTermination(WAIT_S)
    assert before == once(range(800))
    assert ids(broker, "repeats") == once(range(1000))


def test_a_query_that_goes_on_stores_what_is_new_and_repeats_nothing(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """Not what is stored and has not been noted by Spark either."""
    publish(broker, "unnoted", 100)
    frame = read(spark, broker, "unnoted")
    assert start(frame, broker, tmp_path, topic="noted").awaitTermination(WAIT_S)
    notes = [path for path in (tmp_path / "commits").iterdir() if "0" in path.name]
    for note in notes:
        note.unlink()
    before = ids(broker, "noted")
    publish(broker, "unnoted", 100)

    query = start(frame, broker, tmp_path, topic="noted")

    assert query.awaitTermination(WAIT_S)
    assert notes
    assert (tmp_path / "commits" / "0").exists()
    assert before == once(range(100))
    assert ids(broker, "noted") == Counter({str(n): 2 for n in range(100)})


def test_a_broker_that_dies_between_stage_and_commit_stores_once(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    pid = broker.pid

    def kill_before(commit: Callable[[], None]) -> None:
        os.kill(pid, signal.SIGKILL)
        commit()

    marker = tmp_path / "marker"
    form = faulty(spark, kill_before, marker)
    publish(broker, "killed", 1000)
    frame = read(spark, broker, "killed", maxOffsetsPerTrigger=400, progress="off")

    query = start(frame, broker, tmp_path / "checkpoint", form, topic="survived")
    wait_for(marker.exists)
    broker.kill()
    broker.start()
    with pytest.raises(StreamingQueryException, match="is not staged"):
        query.awaitTermination(WAIT_S)
    before = ids(broker, "survived")
    query = start(frame, broker, tmp_path / "checkpoint", form, topic="survived")

    assert query.awaitTermination(WAIT_S)
    assert before == once(range(400))
    assert ids(broker, "survived") == once(range(1000))


def test_complete_mode_appends_all_of_it_each_time(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, "counted", 300)
    frame = read(spark, broker, "counted", maxOffsetsPerTrigger=200)
    counts = frame.groupBy().count().select(col("count").cast("string").alias("value"))

    writer = counts.writeStream.format("penstock").outputMode("complete")
    query = writer.options(
        path=str(broker.data), checkpointLocation=str(tmp_path), topic="counts"
    )

    assert query.trigger(availableNow=True).start().awaitTermination(WAIT_S)
    assert payloads(broker, "counts") == [b"200", b"300"]


# Batches


def test_every_column_arrives(spark: SparkSession, broker: Serving) -> None:
    schema = """value binary, key string, topic string, priority int, id string,
        parent string, headers array<struct<key: string, value: binary>>,
        timestamp timestamp, offset bigint, more string"""
    rows = [
        (b"0", "k", "x", 7, "i", "p", [("h", b"1"), ("g", b"")], None, 5, "?"),
        (b"1", None, "y", None, None, None, None, None, None, None),
    ]

    save(spark.createDataFrame(rows, schema).coalesce(1), broker)

    (first,) = (event for batch in batches(broker, "x") for event in batch.events())
    (second,) = (event for batch in batches(broker, "y") for event in batch.events())
    assert (first.payload, first.key, first.priority) == (b"0", b"k", 7)
    assert (first.id, first.parent, first.producer) == ("i", "p", "spark")
    assert first.headers == {"h": "1", "g": ""}
    assert (second.payload, second.key, second.priority) == (b"1", None, 0)
    assert second.id
    assert second.headers == {}


def test_the_largest_events_go_through_a_stream(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    sizes = [16 << 20, 0, 16 << 20]
    with connect(broker.data) as client:
        for number, size in enumerate(sizes):
            client.publish("large", [bytes(size)], ids=[str(number)])

    query = start(read(spark, broker, "large"), broker, tmp_path, topic="larger")

    assert query.awaitTermination(WAIT_S)
    assert ids(broker, "larger") == once(range(3))
    assert [len(payload) for payload in payloads(broker, "larger")] == sizes


def test_a_write_with_a_name_is_done_once_and_remembered(
    spark: SparkSession, broker: Serving
) -> None:
    """One without is not: it has no name among the queries."""
    save(numbered(spark, 10), broker, topic="nameless")
    for version in (1, 1, 2):
        save(numbered(spark, 10), broker, topic="n", txnAppId="job", txnVersion=version)

    with connect(broker.data) as client:
        sinks: Any = client.ask("sinks")
    queries = {one["query"] for one in sinks["sinks"]}
    assert "spark:job" in queries
    assert not [query for query in queries if query.startswith("spark:write:")]
    assert ids(broker, "nameless") == once(range(10))
    assert ids(broker, "n") == Counter({str(number): 2 for number in range(10)})


def test_a_frame_with_a_bad_row_stores_nothing(
    spark: SparkSession, broker: Serving
) -> None:
    priority = when(col("id") == "300", -1).otherwise(0)
    frame = numbered(spark, 1000).withColumn("priority", priority)

    with pytest.raises(PySparkException) as caught:
        save(frame, broker, topic="bad", txnAppId="bad", txnVersion=0)

    said = str(caught.value)
    assert "row 300 of partition 0 cannot be written: priority -1: must be" in said
    with connect(broker.data) as client:
        sinks: Any = client.ask("sinks")
        with pytest.raises(ServerRefused, match="bad"):
            client.fetch("bad", 0, 1)
    assert not [one for one in sinks["sinks"] if one["query"] == "spark:bad"]


def test_a_payload_that_does_not_fit_its_schema_is_named(
    spark: SparkSession, broker: Serving
) -> None:
    with connect(broker.data) as client:
        client.ask("schemas.register", topic="typed", schema={"type": "integer"})
    frame = spark.createDataFrame([("1",), ("2",), ("three",)], "value string")

    with pytest.raises(PySparkException) as caught:
        save(frame.coalesce(1), broker, topic="typed")

    said = str(caught.value)
    assert "row 2 of partition 0 cannot be written: value b'three'" in said
    assert ids(broker, "typed") == Counter()


def test_a_write_that_is_not_atomic_keeps_its_order(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    failing = failing_once(tmp_path / "failed", 25_000)
    frame = numbered(spark, 30_000, 1).withColumn("id", failing(col("id")))

    save(frame, broker, topic="direct", atomic="false")

    assert (tmp_path / "failed").read_text() == "25000 "
    expected = [str(number).encode() for number in range(30_000)]
    assert payloads(broker, "direct") == expected
    assert ids(broker, "direct") == once(range(30_000))


def test_what_cannot_be_written_is_said_before_a_task_runs(
    spark: SparkSession, broker: Serving
) -> None:
    with pytest.raises(PySparkException, match="column topic is missing"):
        save(numbered(spark, 1), broker)
    with pytest.raises(PySparkException, match="did you mean atomic"):
        save(numbered(spark, 1), broker, topic="t", atomc="true")
    with pytest.raises(PySparkException, match="topic name '' is empty"):
        save(numbered(spark, 1), broker, topic="")


def test_topics_are_not_overwritten(spark: SparkSession, broker: Serving) -> None:
    writer = numbered(spark, 1).write.format("penstock").mode("overwrite")

    with pytest.raises(PySparkException, match="use mode append"):
        writer.options(path=str(broker.data), topic="t").save()


# What they have in common


def batches(broker: Serving, topic: str) -> list[Batch]:
    with connect(broker.data) as client:
        found = client.fetch_all(topic, 0, 1 << 40)
        return [batch for part in found for batch in part.batches]


def ids(broker: Serving, topic: str) -> Counter[str]:
    return Counter(id_ for batch in batches(broker, topic) for id_ in batch.ids())


def payloads(broker: Serving, topic: str) -> list[bytes]:
    return [one for batch in batches(broker, topic) for one in batch.payloads()]


def once(numbers: range) -> Counter[str]:
    """Every number once, as ids."""
    return Counter(map(str, numbers))


def publish(broker: Serving, topic: str, count: int) -> None:
    payloads = [b"payload %d" % number for number in range(count)]
    with connect(broker.data) as client:
        client.publish(topic, payloads, ids=[str(number) for number in range(count)])


def numbered(spark: SparkSession, count: int, partitions: int = 2) -> DataFrame:
    """Rows whose id and value are their number."""
    number = col("id").cast("string")
    rows = spark.range(0, count, 1, partitions)
    return rows.select(number.alias("value"), number.alias("id"))


def read(spark: SparkSession, broker: Serving, topic: str, **options: Any) -> DataFrame:
    """The topic as a stream, from its beginning."""
    reader = spark.readStream.format("penstock").options(
        path=str(broker.data), subscribe=topic, startingOffsets="earliest", **options
    )
    return reader.load().select("value", "id")


def start(
    frame: DataFrame,
    broker: Serving,
    checkpoint: Path,
    form: str = "penstock",
    **options: Any,
) -> StreamingQuery:
    """Write all there is by now."""
    writer = frame.writeStream.format(form).trigger(availableNow=True)
    return writer.options(
        path=str(broker.data), checkpointLocation=str(checkpoint), **options
    ).start()


def save(frame: DataFrame, broker: Serving, **options: Any) -> None:
    writer = frame.write.format("penstock").mode("append")
    writer.options(path=str(broker.data), **options).save()


def failing_once(failed: Path, *numbers: int) -> Any:
    """The id as it is; the first try of a task with one of these ids fails."""

    def check(id_: str) -> str:
        context = TaskContext.get()
        if context and context.attemptNumber() == 0 and int(id_) in numbers:
            with failed.open("a") as file:
                file.write(f"{id_} ")
            raise ValueError("as planned")
        return id_

    return udf(check, "string", useArrow=False)


def faulty(
    spark: SparkSession, fault: Callable[[Callable[[], None]], None], marker: Path
) -> str:
    """A format whose commit of epoch 1 is handed to ``fault``, the first time."""

    # Inside, so that they travel with all they are made of.
    class FaultyWriter(StreamWriter):
        def commit(self, messages: CommitMessages, batchId: int) -> None:
            def commit() -> None:
                StreamWriter.commit(self, messages, batchId)

            if batchId == 1 and not marker.exists():
                marker.touch()
                fault(commit)
            else:
                commit()

    class FaultySource(PenstockSource):
        @classmethod
        def name(cls) -> str:
            return f"faulty-{marker.parent.name}"

        def streamWriter(self, schema: StructType, overwrite: bool) -> FaultyWriter:
            return FaultyWriter(sink_options(self.options), schema)

    spark.dataSource.register(FaultySource)
    return FaultySource.name()


def wait_for(ready: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not ready():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.02)
