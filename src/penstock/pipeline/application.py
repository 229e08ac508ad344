"""The pipeline as one query of Spark over the firehose.

             tasks, one for each part of a batch          state, by key
firehose ─▶ decode ─▶ newest of each id ─▶ score ─▶ write ─▶ sums ──▶ driver
                                                      │        │         │
                                   store: tweets, users        │         │
                                      store: users_engagements ┘         │
                        topics: hashtag_stats, statistics, dead letters ─┘

Tasks write by themselves, wherever Spark runs them; engagement of users and counts of
tags are in Spark's state store; how far the query is stands in its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import inline, max, sum
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client.feed import RETRY_S
from penstock.client.lasting import LastingConnection
from penstock.errors import TopicExists
from penstock.pipeline.batch import MicroBatch
from penstock.pipeline.checkpoint import QUERY
from penstock.pipeline.letters import Letter, letters
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from penstock.pipeline.outlet import QueryFeed
from penstock.pipeline.portion import Stray
from penstock.pipeline.samples import TOPIC as SAMPLES
from penstock.pipeline.samples import Panics
from penstock.pipeline.task import TOLD, Task
from penstock.pipeline.writing import Opener
from penstock.store import store
from penstock.store.store import Store

NAME = QUERY
# Of a session; documents of one Arrow batch are one bulk. Code for so few expressions
# takes longer to make, anew for every batch, than it saves.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


class Application:
    """``start`` it; ``query`` is what runs."""

    def __init__(
        self, spark: SparkSession, options: PipelineOptions, opener: Opener
    ) -> None:
        self.query: StreamingQuery | None = None
        self._spark = spark
        self._options = options
        self._opener = opener
        self._outlet = QueryFeed(options.broker.feed)
        self._line = LastingConnection(options.broker.connect, RETRY_S)
        self._pause_ms = round(options.trigger_s * 1000)
        self.batch = MicroBatch(
            *(self._outlet, opener, self._letters, Panics(self._line)), self._pause_ms
        )

    def start(self) -> None:
        """Raises NotRunning, ConnectionLost, ServerRefused."""
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, self._options.conf.get(name, value))
        make_topics(self._options.broker, [self._options.topic, SAMPLES])
        totals = summed(summed_tweets(self._firehose(), self._opener))
        writer = totals.writeStream.outputMode("update").foreachBatch(self.batch)
        checkpoint = checkpoint_of(self._options.checkpoint)
        writer = writer.queryName(NAME).option("checkpointLocation", checkpoint)
        if self._options.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._pause_ms} milliseconds")
        self.query = writer.start()
        self._outlet.last_note(
            self.query.id
        )  # a run before may have left a window open

    def stop(self) -> None:
        if self.query is not None:
            self.query.stop()
        self._outlet.close()
        self._line.close()

    def _firehose(self) -> DataFrame:
        # However small a batch is: scoring is worth more than one core. A cluster has
        # by now those that it gives, see cluster.py.
        cores = self._spark.sparkContext.defaultParallelism
        return (
            self._spark.readStream.format("penstock")
            .options(**self._options.broker.format_options())
            .option("subscribe", self._options.topic)
            .option("columns", "value,offset,timestamp")
            .option("startingOffsets", "earliest")
            .option("progress", f"pipeline-{NAME}")
            .option("minPartitions", cores)
            .option("maxOffsetsPerTrigger", self._options.max_per_trigger)
            .load()
        )

    def _letters(self, strays: Sequence[Stray]) -> Iterator[Letter]:
        if strays:
            yield from letters(self._line, self._options.topic, strays)


def checkpoint_of(directory: str) -> str:
    """Where the query keeps its checkpoint; ``directory`` may be a URL."""
    return f"{directory.rstrip('/')}/{NAME}"


def summed_tweets(events: DataFrame, opener: Opener) -> DataFrame:
    """What tasks tell of events that they have written; see task.py.

    Spark is told that it does not always say the same, and so asks once for every row.
    """
    task = arrow_udf(Task(opener).run, TOLD)  # type: ignore[call-overload]
    rows = events.select(
        task.asNondeterministic()("value", "offset", "timestamp").alias("told")
    )
    return rows.select(inline("told"))


def summed(rows: DataFrame) -> DataFrame:
    """The totals by key over all batches: state, which is never dropped.

    What bounds it is the number of users and tags. It lies on disk (RocksDB).
    """
    return rows.groupBy("kind", "key").agg(
        sum("count").alias("count"), sum("sum").alias("sum"), max("last").alias("last")
    )


@dataclass(frozen=True, slots=True)
class OpenStore:
    """Opens the store of a URL, wherever it is called."""

    url: str = field(repr=False)
    """It may hold a password."""

    def __call__(self) -> Store:
        return store.open(self.url)


def make_topics(broker: BrokerAddress, names: list[str]) -> None:
    """Have these topics. Raises NotRunning, ConnectionLost, ServerRefused."""
    with broker.connect() as client:
        for name in names:
            with suppress(TopicExists):
                client.ask("topics.create", name=name)
