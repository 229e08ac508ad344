"""Topics as tables on a real Spark: every option, and rows as they were published."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from penstock.client import connect
from penstock.server.users_file import set_password
from penstock.spark.reader import TopicReader
from penstock.spark.source import PenstockSource
from tests.serving import Serving, serving
from tests.spark.tables import plainly, publish, read, servers, table

pytestmark = pytest.mark.spark

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
ORDERS, BILLS = 200, 30


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Topics orders and bills with events, empty without."""
    with serving(tmp_path_factory.mktemp("broker")) as server:
        publish(server, "orders", ORDERS)
        publish(server, "bills", BILLS)
        with connect(server.data) as client:
            client.ask("topics.create", name="empty")
        yield server


@pytest.fixture(params=["servers", "path"])
def place(request: pytest.FixtureRequest, broker: Serving) -> dict[str, str]:
    """Where the bytes come from."""
    return places(broker)[request.param]


@pytest.fixture(params=["servers", pytest.param("path", marks=pytest.mark.deep)])
def anywhere(request: pytest.FixtureRequest, broker: Serving) -> dict[str, str]:
    """The same, where it matters less."""
    return places(broker)[request.param]


@pytest.fixture
def path(broker: Serving) -> dict[str, str]:
    return places(broker)["path"]


def places(broker: Serving) -> dict[str, dict[str, str]]:
    return {
        "servers": {"servers": servers(broker)},
        "path": {"path": str(broker.data)},
    }


def test_rows_are_the_events_as_they_were_published(
    spark: SparkSession, broker: Serving, place: dict[str, str]
) -> None:
    frame = read(
        spark, place, subscribe="orders,bills", includeHeaders=True, minPartitions=5
    )

    assert frame.rdd.getNumPartitions() >= 5
    assert table(frame) == plainly(broker.data, "bills", "orders")


def test_a_job_written_for_kafka_changes_its_format_and_address(
    spark: SparkSession, broker: Serving
) -> None:
    frame = (
        spark.read.format("penstock")
        .option("kafka.bootstrap.servers", servers(broker))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("kafkaConsumer.pollTimeoutMs", "512")
        .load()
        .selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)", "partition")
    )

    assert frame.filter("key = 'key 1'").count() == len(
        [n for n in range(ORDERS) if n % 3 and n % 5 == 1]
    )


def offsets_of(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in rows:
        found.setdefault(row["topic"], []).append(row["offset"])
    return found


CHOICES: dict[str, tuple[dict[str, Any], dict[str, list[int]]]] = {
    "from an offset on": (
        {"subscribe": "orders", "startingOffsets": '{"orders": {"0": 190}}'},
        {"orders": list(range(190, 200))},
    ),
    "between offsets, -2 and -1": (
        {
            "subscribe": "orders,bills",
            "startingOffsets": '{"orders": {"0": 198}, "bills": {"0": -2}}',
            "endingOffsets": '{"orders": {"0": -1}, "bills": {"0": 2}}',
        },
        {"bills": [0, 1], "orders": [198, 199]},
    ),
    "a pattern": ({"subscribePattern": "bill.*|em.*"}, {"bills": list(range(BILLS))}),
    "assigned": ({"assign": '{"bills": [0]}'}, {"bills": list(range(BILLS))}),
    "an empty topic": ({"subscribe": "empty"}, {}),
    "a time that is to come": (
        {"subscribe": "bills", "startingTimestamp": "2999-01-01T00:00:00Z"},
        {},
    ),
    "up to a time that is to come": (
        {
            "subscribe": "bills",
            "startingOffsetsByTimestamp": '{"bills": {"0": 0}}',
            "endingTimestamp": "32503680000000",
        },
        {"bills": list(range(BILLS))},
    ),
    "a topic that is not there": (
        {"subscribe": "bills,none", "failOnDataLoss": "false"},
        {"bills": list(range(BILLS))},
    ),
}


def test_which_events_are_read(spark: SparkSession, broker: Serving) -> None:
    """By all of the choices, in one table, for speed."""
    where = {"servers": servers(broker)}
    frames = [
        read(spark, where, **options, columns="topic,offset").withColumn(
            "choice", lit(choice)
        )
        for choice, (options, _) in CHOICES.items()
    ]

    rows = table(reduce(DataFrame.union, frames))

    for choice, (_, offsets) in CHOICES.items():
        chosen = [row for row in rows if row["choice"] == choice]
        assert offsets_of(chosen) == offsets, choice


def test_events_are_read_from_a_time_on_and_up_to_one(
    spark: SparkSession, broker: Serving, anywhere: dict[str, str]
) -> None:
    """By one time for all topics, and by one for each."""
    topic = f"timed-{'path' in anywhere}"
    moments = []
    with connect(broker.data) as client:
        for number in range(4):
            client.publish(topic, [b"%d" % number] * 5)
            last = plainly(broker.data, topic)[-1]["timestamp"]
            moments.append(int(last.timestamp() * 1000))
            wait_until(lambda: time.time() * 1000 > moments[-1] + 1)

    def found(**options: str) -> list[int]:
        frame = read(
            spark, anywhere, subscribe=topic, columns="topic,offset", **options
        )
        return [row["offset"] for row in table(frame)]

    since, until = str(moments[0] + 1), str(moments[2] + 1)
    by_topic = {
        "startingOffsetsByTimestamp": f'{{"{topic}": {{"0": {since}}}}}',
        "endingOffsetsByTimestamp": f'{{"{topic}": {{"0": {until}}}}}',
    }
    assert found(startingTimestamp=since) == list(range(5, 20))
    assert found(endingTimestamp=until) == list(range(15))
    assert found(**by_topic) == list(range(5, 15))


def test_tasks_are_cut_by_records(spark: SparkSession, path: dict[str, str]) -> None:
    frame = read(spark, path, subscribe="orders", maxRecordsPerPartition=30)

    assert frame.rdd.getNumPartitions() == 7
    assert frame.count() == ORDERS


def test_somebody_logs_in(spark: SparkSession, tmp_path: Path) -> None:
    """With the first of some servers that answers."""
    set_password(tmp_path / "users", "ann", "secret")
    (tmp_path / "password").write_text("secret\n")
    with serving(tmp_path, "--users-file", str(tmp_path / "users")) as server:
        with connect(server.data, user="ann", password="secret") as client:
            client.publish("t", [b"a", b"b"])
        where = {"servers": f"127.0.0.1:1,{servers(server)}", "user": "ann"}

        said = read(spark, {**where, "password": "secret"}, subscribe="t")
        filed = read(
            spark, {**where, "passwordFile": str(tmp_path / "password")}, subscribe="t"
        )
        wrong = {**where, "password": "guess"}

        assert said.count() == filed.count() == 2
        with pytest.raises(PySparkException, match="LoginRefused|login"):
            read(spark, wrong, subscribe="t").count()


def wait_until(done: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.001)


def test_columns_are_chosen_by_an_option_or_a_schema(
    spark: SparkSession, path: dict[str, str]
) -> None:
    narrow = spark.read.format("penstock").options(**path, subscribe="bills")

    chosen = read(spark, path, subscribe="bills", columns="value,offset")
    given = narrow.schema("offset BIGINT, value BINARY").load()

    assert chosen.columns == ["value", "offset"]
    assert given.columns == ["offset", "value"]
    assert table(chosen.select("offset", "value")) == table(given)


@pytest.mark.parametrize(
    ("kind", "enabled"), [("servers", "true"), ("path", "true"), ("servers", "false")]
)
def test_conditions_are_the_same_pushed_or_not(
    spark: SparkSession, broker: Serving, kind: str, enabled: str
) -> None:
    place = places(broker)[kind]
    before = spark.conf.get(PUSHDOWN)
    spark.conf.set(PUSHDOWN, enabled)
    try:
        frame = read(
            spark, place, subscribe="orders,bills", minPartitions=3, pushdown="true"
        )
        found = frame.where(
            "topic = 'orders' AND offset >= 20 AND offset < 40 AND priority = 1 "
            "AND timestamp > '2020-01-01' AND timestamp < '2999-01-01'"
        )

        assert [row["offset"] for row in table(found)] == [22, 29, 36]
    finally:
        spark.conf.set(PUSHDOWN, str(before))


def test_what_is_pushed_is_not_read(spark: SparkSession, path: dict[str, str]) -> None:
    frame = read(
        spark, path, subscribe="orders,bills", minPartitions=10, pushdown="true"
    )

    found = frame.where("topic = 'orders' AND offset = 150")

    assert found.rdd.getNumPartitions() == 1
    assert [row["offset"] for row in table(found)] == [150]


def test_a_table_can_be_asked_again(spark: SparkSession, path: dict[str, str]) -> None:
    """Spark would read it as for the condition before, had that been pushed."""
    frame = read(spark, path, subscribe="orders,bills", columns="topic,offset")
    frame.createOrReplaceTempView("events")

    assert frame.where("offset >= 190").count() == 10
    assert frame.count() == ORDERS + BILLS
    joined = spark.sql(
        "SELECT a.offset FROM events a JOIN events b ON a.offset = b.offset + 190 "
        "WHERE a.offset >= 190 AND b.offset < 5 AND b.topic = 'orders'"
    )
    assert sorted(row[0] for row in joined.collect()) == list(range(190, 195))


def test_payloads_are_columns(
    spark: SparkSession, broker: Serving, anywhere: dict[str, str]
) -> None:
    payloads = [
        b'{"user": "ann", "at": "2026-01-31T12:00:00Z", "tags": ["a", "b"], "id": 1}',
        b"not JSON",
        b'{"user": "bob", "id": 2, "more": {"x": [1, 2]}}',
        b'{"user": 5}',
    ]
    topic = f"typed-{'path' in anywhere}"
    with connect(broker.data) as client:
        client.publish(topic, payloads)

    frame = read(
        spark,
        anywhere,
        subscribe=topic,
        valueSchema="user STRING, at TIMESTAMP, tags ARRAY<STRING>, id BIGINT",
    )

    rows = table(frame)
    assert [row["user"] for row in rows] == ["ann", None, "bob", None]
    assert [row["tags"] for row in rows] == [["a", "b"], None, None, None]
    assert [row["id"] for row in rows] == [1, None, 2, None]
    assert [row["_corrupt"] for row in rows] == [None, payloads[1], None, payloads[3]]
    assert all(len(row["_id"]) == 36 for row in rows)
    assert rows[0]["at"].isoformat() == "2026-01-31T12:00:00+00:00"
    assert frame.where("id = 2").count() == 1
    assert frame.where("_corrupt IS NOT NULL").count() == 2


def test_a_null_where_a_schema_promises_none_is_a_null(
    spark: SparkSession, broker: Serving, path: dict[str, str]
) -> None:
    numbers = ArrayType(LongType(), containsNull=False)
    promises = StructType([StructField("a", numbers, nullable=False)])
    with connect(broker.data) as client:
        client.publish("promised", [b'{"a": [1, null]}', b"{}", b'{"a": [2.0]}'])

    rows = table(
        read(spark, path, subscribe="promised", valueSchema=promises.json()),
    )

    assert [row["a"] for row in rows] == [[1, None], None, [2]]
    assert [row["_corrupt"] for row in rows] == [None] * 3


def test_a_schema_may_not_promise_what_nobody_keeps(
    spark: SparkSession, path: dict[str, str]
) -> None:
    reader = spark.read.format("penstock").options(**path, subscribe="orders")

    with pytest.raises(PySparkException, match="must be without NOT NULL"):
        reader.schema("key BINARY NOT NULL").load().collect()


def test_tasks_know_nothing_of_the_server(
    spark: SparkSession, place: dict[str, str]
) -> None:
    class Watched(TopicReader):
        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            yield from TopicReader.read(self, partition)
            rooms = {name.split(".")[1] for name in sys.modules if "penstock." in name}
            if strangers := rooms & {"server", "broker", "gateway", "http", "cli"}:
                raise AssertionError(f"imported: {strangers}")
            raise RuntimeError(f"rooms: {' '.join(sorted(rooms))}")

    class Watching(PenstockSource):
        @classmethod
        def name(cls) -> str:
            return "watching"

        def reader(self, schema: StructType) -> Watched:
            reader = PenstockSource.reader(self, schema)
            reader.__class__ = Watched
            return cast("Watched", reader)

    spark.dataSource.register(Watching)
    frame = spark.read.format("watching").options(**place, subscribe="bills").load()

    with pytest.raises(PySparkException, match="rooms: .*client.* log .*spark"):
        frame.collect()


def test_maps_and_decimals_are_columns(
    spark: SparkSession, broker: Serving, path: dict[str, str]
) -> None:
    payloads = [
        b'{"price": 12.5, "tags": {"a": ["x"], "b": null}, "by": [{"k": {"z": 1}}]}',
        b'{"price": "0.25", "tags": {}}',
        b'{"price": 0.125}',
        b'{"tags": {"a": 5}}',
    ]
    with connect(broker.data) as client:
        client.publish("priced", payloads)

    frame = read(
        spark,
        path,
        subscribe="priced",
        valueSchema="price DECIMAL(9, 2), tags MAP<STRING, ARRAY<STRING>>, "
        "by ARRAY<MAP<STRING, MAP<STRING, INT>>>",
    )

    rows = table(frame)
    prices = [row["price"] for row in rows]
    assert prices == [Decimal("12.50"), Decimal("0.25"), None, None]
    assert [row["tags"] for row in rows] == [{"a": ["x"], "b": None}, {}, None, None]
    assert rows[0]["by"] == [{"k": {"z": 1}}]
    assert [row["_corrupt"] for row in rows] == [None, None, *payloads[2:]]
    total = frame.selectExpr("sum(price) AS total", "max(size(tags)) AS tags")
    assert total.collect()[0].asDict() == {"total": Decimal("12.75"), "tags": 2}


def test_a_registered_schema_names_the_columns(
    spark: SparkSession, broker: Serving
) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with connect(broker.data) as client:
        client.ask("schemas.register", topic="counted", schema=schema)
    publish(broker, "counted", 5)

    frame = read(
        spark,
        {"servers": servers(broker)},
        subscribe="counted",
        valueSchema="registered",
        columns="n,offset",
    )

    assert frame.schema.simpleString() == "struct<n:bigint,offset:bigint>"
    assert table(frame) == [{"n": n, "offset": n} for n in range(5)]


def test_the_largest_events_are_read(
    spark: SparkSession, broker: Serving, anywhere: dict[str, str]
) -> None:
    topic = f"large-{'path' in anywhere}"
    with connect(broker.data) as client:
        client.publish(topic, [b"x" * (16 << 20) for _ in range(2)])
        client.publish(topic, [b"", b"y"], keys=[None, b""])

    frame = read(spark, anywhere, subscribe=topic)

    lengths = frame.selectExpr(
        "offset", "length(value) AS bytes", "key IS NULL AS none"
    )
    assert [(row["bytes"], row["none"]) for row in table(lengths)] == [
        (16 << 20, True),
        (16 << 20, True),
        (0, True),
        (1, False),
    ]


def test_what_is_published_is_seen_by_the_next_query(
    spark: SparkSession, broker: Serving, anywhere: dict[str, str]
) -> None:
    topic = f"growing-{'path' in anywhere}"
    publish(broker, topic, 10)
    assert read(spark, anywhere, subscribe=topic).count() == 10

    publish(broker, topic, 10, start=10)

    assert read(spark, anywhere, subscribe=topic).count() == 20


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown option": (
        {"subscribe": "t", "startingOfsets": "earliest"},
        "UnknownOption: unknown option startingofsets, did you mean startingOffsets?",
    ),
    "an offset that is not there": (
        {"subscribe": "bills", "startingOffsets": '{"bills": {"0": 500}}'},
        "DataLost: topic bills: startingOffsets is 500, it has 0 to 30",
    ),
    "no schema": (
        {"subscribe": "bills", "valueSchema": "registered"},
        "topic bills has no schema",
    ),
}


@pytest.mark.parametrize(("options", "text"), WRONG.values(), ids=WRONG)
def test_errors_say_what_is_wrong_in_one_line(
    spark: SparkSession, broker: Serving, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(PySparkException) as caught:
        read(spark, {"servers": servers(broker)}, **options).collect()

    assert text in str(caught.value)


def test_a_broker_that_is_not_there_is_given_up(spark: SparkSession) -> None:
    where = {"servers": "127.0.0.1:1", "retrySeconds": "0.2"}
    begun_s = time.monotonic()

    with pytest.raises(PySparkException, match="no broker at 127.0.0.1:1 for 0.2 s"):
        read(spark, where, subscribe="t").collect()

    assert time.monotonic() - begun_s < 60


def test_a_directory_without_its_broker_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        publish(server, "t", 50)
        assert server.stop() == 0

    frame = read(spark, {"path": str(server.data)}, subscribe="t", includeHeaders=True)

    assert table(frame) == plainly(server.data, "t")
