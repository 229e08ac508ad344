"""Topics as streams on a real Spark: exact over limits, crashes and restarts."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import connect
from penstock.log import Columns, Log, TopicOptions
from tests.effort import effort
from tests.serving import Serving, serving
from tests.spark.tables import (
    Table,
    free_port,
    plainly,
    publish,
    read,
    servers,
    table,
)

pytestmark = pytest.mark.spark

WAIT_S = 120
COLUMNS = "topic,offset,value"
ROUNDS = effort(1, 2)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("broker")) as server:
        yield server


def places(broker: Serving) -> dict[str, dict[str, str]]:
    return {
        "servers": {"servers": servers(broker)},
        "path": {"path": str(broker.data)},
    }


def stream(spark: SparkSession, place: dict[str, str], **options: Any) -> DataFrame:
    """All there is and will be of some topics."""
    given = {"startingOffsets": "earliest", **place, **options}
    return spark.readStream.format("penstock").options(**given).load()


def to_files(frame: DataFrame, directory: Path, *, now: bool = True) -> StreamingQuery:
    """A query that writes files, each batch once; ``now`` ends with what there is."""
    writer = frame.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    if now:
        writer = writer.trigger(availableNow=True)
    return writer.start(str(directory / "out"))


def written(directory: Path) -> Table:
    """Rows of the batches that are done, by topic and offset; not by Spark, for speed.

    The log of a sink that writes files: a file for each batch, and now and then one for
    all batches so far.
    """
    log = directory / "out" / "_spark_metadata"
    notes = [one for one in log.glob("[0-9]*") if one.stem.isdecimal()]
    notes.sort(key=lambda one: (int(one.stem), one.suffix))
    whole = max((n for n, one in enumerate(notes) if one.suffix), default=0)
    files = [
        json.loads(line)["path"]
        for one in notes[whole:]
        for line in one.read_text().splitlines()[1:]
    ]
    rows = [row for file in files for row in rows_of(file.removeprefix("file://"))]
    return sorted(rows, key=lambda row: (row.get("topic", ""), row.get("offset", 0)))


def rows_of(file: str) -> Table:
    found = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    for number, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            utc = found.column(number).cast(pa.timestamp("us", "UTC"))
            found = found.set_column(number, field.name, utc)
    rows: Table = found.to_pylist()
    return rows


def until(done: Callable[[], bool], query: StreamingQuery | None = None) -> None:
    """Wait for it; a query that fails meanwhile fails the test."""
    deadline_s = time.monotonic() + WAIT_S
    while not done():
        if query is not None and query.exception() is not None:
            raise AssertionError(str(query.exception()))
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.05)


def twice(frame: DataFrame, directory: Path) -> tuple[Path, Path]:
    """Two folders with the checkpoint of a query that is done; one has its files."""
    first, second = directory / "first", directory / "second"
    assert to_files(frame, second).awaitTermination(WAIT_S)
    shutil.copytree(second / "checkpoint", first / "checkpoint")
    return first, second


def offsets(rows: Table, topic: str) -> list[int]:
    return [row["offset"] for row in rows if row["topic"] == topic]


@pytest.mark.parametrize("kind", ["servers", "path"])
def test_a_stream_is_the_table_is_the_topic(
    spark: SparkSession, broker: Serving, tmp_path: Path, kind: str
) -> None:
    place, topic = places(broker)[kind], f"same-{kind}"
    publish(broker, topic, 300)
    said = {"subscribe": topic, "includeHeaders": "true"}

    limits = {"maxOffsetsPerTrigger": 120, "minPartitions": 3}
    frame = stream(spark, place, **said, **limits, progress=kind)
    query = to_files(frame, tmp_path)
    assert query.awaitTermination(WAIT_S)

    progress = [one for one in query.recentProgress if one["numInputRows"]]
    assert [one["numInputRows"] for one in progress] == [120, 120, 60]
    latest = progress[0]["sources"][0]["latestOffset"]
    assert json.loads(latest) == {topic: {"0": 300}}
    rows = plainly(broker.data, topic)
    assert written(tmp_path) == rows
    assert table(read(spark, place, **said)) == rows
    # Its lag is seen at the broker.
    assert subscribers(broker, topic) == {f"spark:{kind}": (300, 0)}
    publish(broker, topic, 50, start=300)
    assert subscribers(broker, topic) == {f"spark:{kind}": (300, 50)}


def subscribers(broker: Serving, topic: str) -> dict[str, tuple[int, int]]:
    """Position and lag, by name."""
    with connect(broker.data) as client:
        found: Any = client.ask("subscriptions", topic=topic)
    rows = found["subscriptions"]
    return {one["subscriber"]: (one["position"], one["lag"]) for one in rows}


def test_typed_rows_of_a_compacted_topic_are_the_same_read_in_any_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    with Log.open(data) as log:
        log.create_topic("t", TopicOptions(compact=True, segment_bytes=1024))
        for number in range(200):
            payload = b"junk" if number % 40 == 0 else b'{"n": %d.0}' % number
            key = b"%d" % (number % 7 if number % 3 else number)
            log.append("t", Columns([payload], 1000 * number, keys=[key]))
        log.roll("t")
        log.append("t", Columns([b'{"n": NaN}'], 200_000, keys=[b"last"]))
        log.sync()
        log.compact("t")
    said = {"subscribe": "t", "valueSchema": "n BIGINT", "columns": "n,_corrupt,offset"}

    query = to_files(
        stream(spark, {"path": str(data)}, **said, maxOffsetsPerTrigger=100), tmp_path
    )
    assert query.awaitTermination(WAIT_S)

    rows = [_typed(row) for row in plainly(data, "t")]
    assert 50 < len(rows) < 150
    assert len([row for row in rows if row["_corrupt"]]) > 1
    assert written(tmp_path) == rows
    for tasks in (1, 9):
        frame = read(spark, {"path": str(data)}, **said, minPartitions=tasks)
        assert table(frame) == rows


def _typed(row: dict[str, Any]) -> dict[str, Any]:
    try:
        found = {"n": int(json.loads(row["value"])["n"]), "_corrupt": None}
    except ValueError:
        found = {"n": None, "_corrupt": row["value"]}
    return {**found, "offset": row["offset"]}


def test_a_query_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """Stopped in between, ended, and with more to do each time."""
    frame = stream(
        spark,
        places(broker)["servers"],
        subscribe="resumed",
        columns=COLUMNS,
        maxOffsetsPerTrigger=50,
        progress="off",
    )
    publish(broker, "resumed", 200)
    query = to_files(frame, tmp_path, now=False)
    until(lambda: len(query.recentProgress) >= 2, query)
    query.stop()
    before = len(written(tmp_path))
    publish(broker, "resumed", 50, start=200)

    assert to_files(frame, tmp_path).awaitTermination(WAIT_S)

    assert 50 <= before < 250
    assert offsets(written(tmp_path), "resumed") == list(range(250))
    assert subscribers(broker, "resumed") == {}


def test_a_stream_begins_at_a_time_and_reads_empty_topics(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, "old", 10)
    last = plainly(broker.data, "old")[-1]["timestamp"]
    since_ms = int(last.timestamp() * 1000) + 1
    until(lambda: time.time() * 1000 > since_ms)
    publish(broker, "old", 5, start=10)
    with connect(broker.data) as client:
        client.ask("topics.create", name="bare")
    frame = stream(
        spark,
        places(broker)["servers"],
        subscribe="old,bare",
        startingTimestamp=str(since_ms),
        columns=COLUMNS,
    )

    assert to_files(frame, tmp_path).awaitTermination(WAIT_S)
    publish(broker, "bare", 3)
    assert to_files(frame, tmp_path).awaitTermination(WAIT_S)

    rows = written(tmp_path)
    assert offsets(rows, "old") == list(range(10, 15))
    assert offsets(rows, "bare") == [0, 1, 2]


def test_the_first_batch_is_repeated_as_it_was(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """From ``latest`` on, and failed: later, the latest is elsewhere."""
    publish(broker, "latest", 5)
    frame = stream(
        spark,
        places(broker)["servers"],
        subscribe="latest",
        startingOffsets="latest",
        columns=COLUMNS,
    )
    seen: list[list[int]] = []

    def take(batch: DataFrame, number: int) -> None:
        found = sorted(row["offset"] for row in batch.collect())
        seen.append(found)
        if found and len([one for one in seen if one]) == 1:
            raise ValueError("once")

    def start() -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(take)
        return writer.option("checkpointLocation", str(tmp_path / "c")).start()

    query = start()
    until(lambda: bool(query.recentProgress) or bool(seen), query)
    with connect(broker.data) as client:  # all at once: in one batch, whenever it comes
        client.publish("latest", [b"%d" % number for number in range(5, 10)])
    with pytest.raises(StreamingQueryException, match="once"):
        query.awaitTermination(WAIT_S)
    publish(broker, "latest", 5, start=10)

    query = start()
    until(lambda: sum(map(len, seen)) >= 15, query)
    query.stop()

    assert [one for one in seen if one] == [
        [5, 6, 7, 8, 9],
        [5, 6, 7, 8, 9],
        [10, 11, 12, 13, 14],
    ]


def test_a_broker_may_be_killed_and_started_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    with serving(tmp_path, "--native-port", free_port()) as server:
        publish(server, "t", 100)
        frame = stream(
            spark,
            places(server)["servers"],
            subscribe="t",
            columns=COLUMNS,
            maxOffsetsPerTrigger=30,
        )
        query = to_files(frame, tmp_path, now=False)
        until(lambda: bool(query.recentProgress), query)

        for round_ in range(ROUNDS):
            server.kill()
            server.start()
            publish(server, "t", 100, start=100 * (round_ + 1))
        whole = 100 * (ROUNDS + 1)
        until(lambda: len(written(tmp_path)) >= whole, query)
        query.stop()

        assert offsets(written(tmp_path), "t") == list(range(whole))

        # One that stays away ends the query, with its name.
        place = places(server)["servers"]
        frame = stream(spark, place, subscribe="t", retrySeconds="0.5")
        query = to_files(frame, tmp_path / "impatient", now=False)
        until(lambda: bool(query.recentProgress), query)
        server.kill()
        text = f"no broker at {place['servers']} for 0.5 s"
        with pytest.raises(StreamingQueryException, match=text):
            query.awaitTermination(WAIT_S)


def test_new_topics_of_a_pattern_appear_in_a_running_query(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, "region-eu", 10)
    frame = stream(
        spark,
        places(broker)["servers"],
        subscribePattern="region-.*",
        startingOffsets="latest",
        columns=COLUMNS,
    )
    query = to_files(frame, tmp_path, now=False)
    until(lambda: bool(query.recentProgress), query)

    publish(broker, "region-us", 20)
    until(lambda: len(written(tmp_path)) >= 20, query)
    publish(broker, "region-eu", 5, start=10)
    until(lambda: len(written(tmp_path)) >= 25, query)
    query.stop()

    rows = written(tmp_path)
    assert offsets(rows, "region-us") == list(range(20))
    assert offsets(rows, "region-eu") == list(range(10, 15))


@pytest.mark.deep
def test_a_topic_deleted_under_the_reader(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, "stays", 10)
    publish(broker, "goes", 10)
    said = {"subscribe": "stays,goes", "columns": COLUMNS}
    place = places(broker)["servers"]
    careful, careless = twice(stream(spark, place, **said), tmp_path)

    with connect(broker.data) as client:
        client.ask("topics.delete", name="goes")
    publish(broker, "stays", 5, start=10)

    with pytest.raises(StreamingQueryException, match="topic goes: it was deleted"):
        to_files(stream(spark, place, **said), careful).awaitTermination(WAIT_S)
    query = to_files(stream(spark, place, **said, failOnDataLoss="false"), careless)
    assert query.awaitTermination(WAIT_S)
    assert offsets(written(careless), "stays") == list(range(15))


def test_a_topic_deleted_and_made_again_under_the_reader(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """With more events than before: the offsets are there, and mean others."""
    publish(broker, "again", 10)
    said = {"subscribe": "again", "columns": COLUMNS}
    place = places(broker)["servers"]
    careful, careless = twice(stream(spark, place, **said), tmp_path)

    with connect(broker.data) as client:
        client.ask("topics.delete", name="again")
    publish(broker, "again", 15, start=100)

    text = "topic again: it was deleted and made again"
    with pytest.raises(StreamingQueryException, match=text):
        to_files(stream(spark, place, **said), careful).awaitTermination(WAIT_S)
    query = to_files(stream(spark, place, **said, failOnDataLoss="false"), careless)
    assert query.awaitTermination(WAIT_S)
    numbers = [json.loads(row["value"])["n"] for row in written(careless)]
    assert sorted(numbers) == [*range(10), *range(100, 115)]


@pytest.mark.deep
def test_retention_that_overtakes_a_query(spark: SparkSession, tmp_path: Path) -> None:
    with serving(tmp_path, "--native-port", free_port()) as server:
        with connect(server.data) as client:
            sizes = {"segment_bytes": 1 << 16, "retention_bytes": 1 << 17}
            client.ask("topics.create", name="t", **sizes)
        publish(server, "t", 10)
        place = places(server)["servers"]
        said = {"subscribe": "t", "columns": COLUMNS}
        careful, careless = twice(stream(spark, place, **said), tmp_path)

        def start_offset() -> int:
            with connect(server.data) as client:
                found: Any = client.ask("topics.show", name="t")
            return int(found["start_offset"])

        number = 5010
        publish(server, "t", 5000, start=10)
        server.stop()
        server.start()  # and look what is to go
        until(lambda: start_offset() > 10)

        with pytest.raises(StreamingQueryException, match="topic t: offset 10 is not"):
            to_files(stream(spark, place, **said), careful).awaitTermination(
                int(WAIT_S)
            )
        query = to_files(stream(spark, place, **said, failOnDataLoss="false"), careless)
        assert query.awaitTermination(WAIT_S)
        found = offsets(written(careless), "t")
        assert found[:10] == list(range(10))
        assert found[10] > 10
        assert found[10:] == list(range(found[10], number))


def test_typed_payloads_in_a_window(
    spark: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """A batch without data, which moves the watermark, brings nothing twice."""
    with connect(broker.data) as client:
        client.publish(
            "typed",
            [
                b'{"at": "2026-01-01T00:%02d:30Z", "n": %d}' % (n // 10, n)
                for n in range(60)
            ]
            + [b"junk"],
        )
    frame = stream(
        spark,
        places(broker)["path"],
        subscribe="typed",
        valueSchema="at TIMESTAMP, n BIGINT",
        columns="at,n,_corrupt",
    )
    counts = (
        frame.withWatermark("at", "1 minute")
        .groupBy("at")
        .count()
        .selectExpr("at AS topic", "count AS offset")
    )

    assert to_files(counts, tmp_path).awaitTermination(WAIT_S)

    found = [row["offset"] for row in written(tmp_path)]
    assert found == [10] * len(found)
    assert len(found) >= 4
