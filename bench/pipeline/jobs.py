"""The query alone, over a topic that is full already, and the same without Spark.

No source, no ingest, no capture of changes, no subscribers: the query has the machine
for itself, and PostgreSQL beside it. One plain process of Python does the same work
from the same topic into the same store. Both write into an empty database.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.peers import penstock_server
from bench.peers.processes import Server
from bench.pipeline.line import SEED, tree_cpu_s
from bench.pipeline.plain import Took
from bench.pipeline.scene import Scene
from bench.rounds import Sample, take_turns
from penstock.client import connect
from penstock.pipeline.application import Application, OpenStore
from penstock.pipeline.documents import COLLECTIONS
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from penstock.pipeline.run import QueryCounts, settings
from penstock.spark import session
from penstock.store.own import DATABASE, OwnPostgres
from penstock.store.postgres import connected
from penstock.store.store import open_store
from penstock.supervisor.plan import FIREHOSE, STREAMS
from penstock.tweets.generator import Generator

MASTER = "local[2]"
# Of ten thousand a second two minutes that do not count, and one that does.
TWEETS, QUICK_TWEETS = 1_800_000, 120_000
WARM_UP, QUICK_WARM_UP = 1_200_000, 60_000
# As many as penstock up has by default.
MALFORMED = 0.001
SPARK, PLAIN = "Spark", "one plain process of Python"
POLL_S = 0.05
PATIENCE_S = 900.0


@dataclass(frozen=True)
class Stage:
    """What all rounds share."""

    scene: Scene
    spark: SparkSession
    broker: Server
    store: OwnPostgres
    tweets: int
    skipped: int
    """Of those, how many are done before it counts."""

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.broker.place.ports['native']}"


def run(scene: Scene) -> dict[str, Sample]:
    """A long round of each; CPU is that of Spark and its workers."""
    quick = scene.settings.quick
    tweets = QUICK_TWEETS if quick else TWEETS
    with _stage(scene, tweets, QUICK_WARM_UP if quick else WARM_UP) as stage:
        fill(stage.server, stage.tweets)
        turns = {PLAIN: lambda: plain(stage), SPARK: lambda: spark(stage)}
        return take_turns(turns, rounds=1, warm_up=False)


@contextmanager
def _stage(scene: Scene, tweets: int, skipped: int) -> Iterator[Stage]:
    folder = scene.settings.directory
    broker = penstock_server.start(scene.fresh("broker"), "sync")
    try:
        with OwnPostgres(scene.fresh("store")) as store, _session(folder) as spark:
            yield Stage(scene, spark, broker, store, tweets, skipped)
    finally:
        broker.stop()


@contextmanager
def _session(folder: Path) -> Iterator[SparkSession]:
    local = {"spark.local.dir": str(folder / "local")}
    warehouse = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
    spark = session(MASTER, **settings(MASTER), **local, **warehouse)
    spark.sparkContext.setLogLevel("OFF")  # a query that is stopped says much
    try:
        yield spark
    finally:
        spark.stop()


def fill(server: str, tweets: int) -> None:
    """The tweets of both streams, by turns, as the ingest would have stored them.

    Objects that are no tweets are among them; what is no object has not come so far.
    """
    streams = [Generator(SEED, stream, malformed_rate=MALFORMED) for stream in STREAMS]
    with connect(server, name="bench") as client:
        client.ask("topics.create", name=FIREHOSE)
        for first in range(1, tweets // len(streams) + 1, 1000):
            count = min(1000, tweets // len(streams) + 1 - first)
            for one in streams:
                client.publish(
                    FIREHOSE, [_stored(data) for data in one.batch(first, count)]
                )


def _stored(data: bytes) -> bytes:
    return data if data.endswith(b"}") else b"{}"


def spark(stage: Stage) -> Sample:
    """The pipeline, until it has done all of the topic."""
    application = Application(stage.spark, *_wanted(stage))
    try:
        application.start()
        return _timed(application, stage)
    finally:
        application.stop()


def plain(stage: Stage) -> Sample:
    """The same work in one process without Spark; CPU is that of the process."""
    options, _ = _wanted(stage)
    command = (
        sys.executable,
        "-m",
        "bench.pipeline.plain",
        stage.server,
        options.store,
    )
    numbers = (str(stage.tweets), str(stage.skipped))
    done = subprocess.run([*command, *numbers], stdout=subprocess.PIPE, check=True)
    took = msgspec.json.decode(done.stdout, type=Took)
    return Sample(events=took.events, bytes=0, seconds=took.seconds, cpu_s=took.cpu_s)


def _wanted(stage: Stage) -> tuple[PipelineOptions, OpenStore]:
    checkpoint = stage.scene.fresh("checkpoint")
    url = _database(stage.store, f"bench_{checkpoint.name.rpartition('-')[2]}")
    with open_store(url) as store:
        store.prepare(COLLECTIONS)
    options = PipelineOptions(
        broker=BrokerAddress(server=stage.server),
        store=url,
        checkpoint=str(checkpoint),
        available_now=True,
    )
    return options, OpenStore(url)


def _database(store: OwnPostgres, name: str) -> str:
    """An empty one."""
    with connected(store.url) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return store.url.replace(f"/{DATABASE}?", f"/{name}?")


def _timed(application: Application, stage: Stage) -> Sample:
    """From the end of the batch with which it begins to count, until all is done."""
    query = application.query
    assert query is not None, "it was started"
    counts = QueryCounts()

    def begun() -> bool:
        counts.see(cast(Any, query.lastProgress))
        return counts.events >= stage.skipped

    _until(begun, query)
    first, cpu_s, began_s = counts.events, _spark_cpu_s(stage), time.perf_counter()
    _until(lambda: not query.isActive, query)
    return Sample(
        events=stage.tweets - first,
        bytes=0,
        seconds=time.perf_counter() - began_s,
        cpu_s=_spark_cpu_s(stage) - cpu_s,
    )


def _until(done: Callable[[], bool], query: StreamingQuery) -> None:
    limit_s = time.monotonic() + PATIENCE_S
    while not done():
        if (error := query.exception()) is not None:
            raise RuntimeError(f"it failed: {str(error).splitlines()[0]}")
        if time.monotonic() >= limit_s:
            raise RuntimeError(f"not done in {PATIENCE_S:.0f} s")
        time.sleep(POLL_S)


def _spark_cpu_s(stage: Stage) -> float:
    """Of this process and all below it, without PostgreSQL and the broker."""
    others = [*stage.broker.place.pids, *filter(None, [stage.store.pid])]
    return tree_cpu_s(os.getpid()) - sum(map(tree_cpu_s, others))
