"""The ceiling: the same jobs over the same tweets from Parquet files, and nothing else.

No source, no ingest, no capture of changes, no subscribers: the jobs have the machine
for themselves, and PostgreSQL beside them. Beside it the same from a topic that is
full already. Both write into an empty database, in batches of the same size, and tell
their samples and counts of tags to a broker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.peers import penstock_server
from bench.peers.processes import Server
from bench.pipeline.line import SEED, tree_cpu_s
from bench.pipeline.scene import Scene
from bench.rounds import Sample, take_turns
from penstock.client import connect
from penstock.pipeline.application import (
    COLLECTIONS,
    PACES,
    SETTINGS,
    Application,
    OpenStore,
)
from penstock.pipeline.options import MAX_PER_TRIGGER, Broker, PipelineOptions
from penstock.pipeline.parse import firehose
from penstock.spark import session
from penstock.store.own import DATABASE, OwnPostgres
from penstock.store.postgres import connected
from penstock.store.store import open_store
from penstock.supervisor.plan import FIREHOSE, STREAMS
from penstock.tweets.generator import Generator

MASTER = "local[2]"
TWEETS, QUICK_TWEETS = 60_000, 30_000
ROUNDS, QUICK_ROUNDS = 3, 1
# A batch is of two files, so that there are two tasks to read it.
FILES = 2
PARQUET, TOPIC = "from Parquet files", "from a full topic"
POLL_S = 0.05
PATIENCE_S = 300.0


class FromParquet(Application):
    """The pipeline, but its tweets are in files."""

    path = ""

    def _firehose(self, name: str, **more: Any) -> DataFrame:
        reader = self._spark.readStream.schema(schema())
        reader = reader.option("maxFilesPerTrigger", FILES * PACES[name])
        return reader.parquet(self.path)


@dataclass(frozen=True)
class Stage:
    """What all rounds share."""

    scene: Scene
    spark: SparkSession
    broker: Server
    store: OwnPostgres
    tweets: int

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.broker.place.ports['native']}"

    @property
    def parquet(self) -> Path:
        return self.scene.settings.directory / "tweets.parquet"


def run(scene: Scene) -> dict[str, Sample]:
    """The median round of each; CPU is that of Spark and its workers."""
    quick = scene.settings.quick
    with _stage(scene, QUICK_TWEETS if quick else TWEETS) as stage:
        fill(stage.server, stage.tweets)
        write_parquet(stage)
        turns = {
            PARQUET: _contender(stage, FromParquet),
            TOPIC: _contender(stage, Application),
        }
        turns[PARQUET]()  # the first round of all is Java's, to get warm
        return take_turns(turns, QUICK_ROUNDS if quick else ROUNDS, warm_up=False)


@contextmanager
def _stage(scene: Scene, tweets: int) -> Iterator[Stage]:
    folder = scene.settings.directory
    broker = penstock_server.start(scene.fresh("broker"), "sync")
    try:
        with OwnPostgres(scene.fresh("store")) as store, _session(folder) as spark:
            yield Stage(scene, spark, broker, store, tweets)
    finally:
        broker.stop()


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    local = {"spark.local.dir": str(folder / "local")}
    warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
    spark = session(MASTER, **SETTINGS, **local, **warehouse)
    spark.sparkContext.setLogLevel("OFF")  # a query that is stopped says much
    try:
        yield spark
    finally:
        spark.stop()


def fill(server: str, tweets: int) -> None:
    """The tweets of both streams, by turns, as the ingest would have stored them."""
    streams = [Generator(SEED, stream) for stream in STREAMS]
    with connect(server, name="bench") as client:
        client.ask("topics.create", name=FIREHOSE)
        for first in range(1, tweets // len(streams) + 1, 1000):
            count = min(1000, tweets // len(streams) + 1 - first)
            for one in streams:
                client.publish(FIREHOSE, one.batch(first, count))


def schema() -> str:
    return f"{firehose()}, offset BIGINT, _corrupt STRING"


def write_parquet(stage: Stage) -> None:
    """What the jobs would get from the topic, decoded, in files of half a batch."""
    frame = (
        stage.spark.read.format("penstock")
        .options(servers=stage.server, subscribe=FIREHOSE, valueSchema=firehose())
        .option("columns", "message,offset,_corrupt")
        .load()
    )
    writer = frame.coalesce(1).write
    writer = writer.option("maxRecordsPerFile", MAX_PER_TRIGGER // FILES)
    writer.parquet(str(stage.parquet))


def _contender(stage: Stage, kind: type[Application]) -> Callable[[], Sample]:
    def run_once() -> Sample:
        application = _application(stage, kind)
        try:
            application.start()
            return _timed(application, stage)
        finally:
            application.stop()

    return run_once


def _application(stage: Stage, kind: type[Application]) -> Application:
    checkpoint = stage.scene.fresh("checkpoint")
    url = _database(stage.store, f"bench_{checkpoint.name.rpartition('-')[2]}")
    with open_store(url) as store:
        store.prepare(COLLECTIONS)
    options = PipelineOptions(
        broker=Broker(server=stage.server),
        store=url,
        checkpoint=str(checkpoint),
        available_now=True,
    )
    application = kind(stage.spark, options, OpenStore(url))
    if isinstance(application, FromParquet):
        application.path = str(stage.parquet)
    return application


def _database(store: OwnPostgres, name: str) -> str:
    """An empty one."""
    with connected(store.url) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return store.url.replace(f"/{DATABASE}?", f"/{name}?")


def _timed(application: Application, stage: Stage) -> Sample:
    """From the end of the first batch, with which all begins, until all is done."""
    queries = application.queries
    _until(lambda: queries["tweets"].lastProgress is not None, application)
    cpu_s, began_s = _spark_cpu_s(stage), time.perf_counter()
    _until(lambda: not any(one.isActive for one in queries.values()), application)
    return Sample(
        events=stage.tweets - MAX_PER_TRIGGER,
        bytes=0,
        seconds=time.perf_counter() - began_s,
        cpu_s=_spark_cpu_s(stage) - cpu_s,
    )


def _until(done: Callable[[], bool], application: Application) -> None:
    limit_s = time.monotonic() + PATIENCE_S
    while not done():
        for name, query in application.queries.items():
            if (error := query.exception()) is not None:
                raise RuntimeError(f"{name} failed: {str(error).splitlines()[0]}")
        if time.monotonic() >= limit_s:
            raise RuntimeError(f"not done in {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def _spark_cpu_s(stage: Stage) -> float:
    """Of this process and all below it, without PostgreSQL and the broker."""
    others = [*stage.broker.place.pids, *filter(None, [stage.store.pid])]
    return tree_cpu_s(os.getpid()) - sum(map(tree_cpu_s, others))
