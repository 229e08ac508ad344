"""The jobs as queries of one Spark application, each with its name and checkpoint.

firehose ──┬─ tweets ───▶ store: tweets, users        samples ──▶ pipeline_samples
           ├─ running ──▶ store: users_engagements    samples ──▶ pipeline_samples
           └─ hashtags ─▶ hashtag_stats
pipeline_samples ── statistics ──▶ logger_stats, tweets_stats, users_stats
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.client.feed import RETRY_S
from penstock.client.line import Line
from penstock.errors import ServerRefused
from penstock.pipeline import samples
from penstock.pipeline.batches import (
    HashtagBatch,
    Outlet,
    RunningBatch,
    Strays,
    TweetBatch,
)
from penstock.pipeline.changes import TWEETS, USERS
from penstock.pipeline.engagement import engagement
from penstock.pipeline.hashtags import hashtags
from penstock.pipeline.letters import Letter, letters
from penstock.pipeline.options import Broker, PipelineOptions
from penstock.pipeline.parse import firehose, tweets
from penstock.pipeline.running import COLLECTION, running
from penstock.pipeline.statistics import SAMPLE, statistics
from penstock.pipeline.writing import Opener
from penstock.store import store
from penstock.store.store import Store

COLLECTIONS = (TWEETS, USERS, COLLECTION)
# Of these, a name and how many triggers of the tweets one of its own takes: the
# original flushed users and tags every 3 seconds, and statistics every 5.
PACES = {"tweets": 1, "running": 3, "hashtags": 3, "statistics": 5}
# Of a session; documents of one Arrow batch are one bulk.
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


class Application:
    """``start`` it; ``queries`` are what runs, by name."""

    def __init__(
        self, spark: SparkSession, options: PipelineOptions, opener: Opener
    ) -> None:
        self.queries: dict[str, StreamingQuery] = {}
        self._spark = spark
        self._options = options
        self._opener = opener
        self._outlets: list[Outlet] = []

    def start(self) -> None:
        """Start what reads the firehose; statistics too, unless they have to wait.

        Raises NotRunning, ConnectionLost, ServerRefused.
        """
        for name, value in SETTINGS.items():
            self._spark.conf.set(name, value)
        make_topics(self._options.broker, [self._options.topic, samples.TOPIC])
        self._start_tweets()
        self._start_running()
        self._start_hashtags()
        if not self._options.available_now:
            self.start_statistics()

    def stop(self) -> None:
        for query in self.queries.values():
            query.stop()
        for outlet in self._outlets:
            outlet.close()

    def start_statistics(self) -> None:
        """Of all samples there are: if everything ends, when the others have ended."""
        frame = self._stream(
            "statistics",
            subscribe=samples.TOPIC,
            valueSchema=SAMPLE,
            columns="kind,ms,count,timestamp",
        )
        writer = statistics(frame).writeStream.format("penstock")
        writer = writer.options(**self._options.broker.format_options())
        self._start("statistics", writer.outputMode("append"))

    def _start_tweets(self) -> None:
        # However small a batch is: VADER is worth more than one core.
        cores = self._spark.sparkContext.defaultParallelism
        events = self._firehose("tweets", minPartitions=cores)
        batch = TweetBatch(self._outlet(), self._opener, self._letters)
        self._each("tweets", events, "append", batch)

    def _start_running(self) -> None:
        events = self._firehose("running")
        batch = RunningBatch(self._outlet(), self._opener)
        self._each("running", running(engagement(tweets(events))), "update", batch)

    def _start_hashtags(self) -> None:
        events = self._firehose("hashtags")
        batch = HashtagBatch(self._outlet())
        self._each("hashtags", hashtags(tweets(events)), "update", batch)

    def _firehose(self, name: str, **more: Any) -> DataFrame:
        return self._stream(
            name,
            **more,
            subscribe=self._options.topic,
            valueSchema=firehose(),
            columns="message,offset,_corrupt",
            maxOffsetsPerTrigger=self._options.max_per_trigger * PACES[name],
        )

    def _stream(self, name: str, **more: Any) -> DataFrame:
        return (
            self._spark.readStream.format("penstock")
            .options(**self._options.broker.format_options())
            .options(startingOffsets="earliest", progress=f"pipeline-{name}", **more)
            .load()
        )

    def _each(
        self,
        name: str,
        frame: DataFrame,
        mode: str,
        batch: Callable[[DataFrame, int], None],
    ) -> None:
        self._start(name, frame.writeStream.outputMode(mode).foreachBatch(batch))

    def _start(self, name: str, writer: DataStreamWriter) -> None:
        options = self._options
        if options.available_now:
            writer = writer.trigger(availableNow=True)
        else:
            pause_ms = round(options.trigger_s * 1000) * PACES[name]
            writer = writer.trigger(processingTime=f"{pause_ms} milliseconds")
        checkpoint = str(Path(options.checkpoint, name))
        writer = writer.queryName(name).option("checkpointLocation", checkpoint)
        self.queries[name] = writer.start()

    def _outlet(self) -> Outlet:
        outlet = Outlet(self._options.broker.feed)
        self._outlets.append(outlet)
        return outlet

    def _letters(self, strays: Strays) -> Iterator[Letter]:
        if strays:
            with Line(self._options.broker.connect, RETRY_S) as line:
                yield from letters(line, self._options.topic, strays)


@dataclass(frozen=True, slots=True)
class OpenStore:
    """Opens the store of a URL, wherever it is called."""

    url: str = field(repr=False)
    """It may hold a password."""

    def __call__(self) -> Store:
        return store.open(self.url)


def make_topics(broker: Broker, names: list[str]) -> None:
    """Have these topics. Raises NotRunning, ConnectionLost, ServerRefused."""
    with broker.connect() as client:
        for name in names:
            try:
                client.ask("topics.create", name=name)
            except ServerRefused as error:
                if error.error != "TopicExists":
                    raise
