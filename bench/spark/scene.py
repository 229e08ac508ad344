"""Where it all runs: one Spark session, one scratch directory, files made once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from bench.peers import penstock_server
from bench.peers.adapter import Place
from bench.peers.processes import cpu_s
from bench.rounds import Contender, Sample, Settings, take_turns
from bench.spark import plain, topics
from penstock.spark import session

ROOT = Path(__file__).resolve().parents[2]
MASTER = "local[2]"
EVENTS = 5_000_000


@dataclass
class Scene:
    """One run of the benchmark; ``pid`` is the root of all processes it starts."""

    settings: Settings
    spark: SparkSession
    # All that is in the topic that tables are read from.
    events: int = EVENTS
    rounds: int = 3
    warm_up: bool = True
    pid: int = field(default_factory=os.getpid)

    @property
    def directory(self) -> Path:
        return self.settings.directory

    @cached_property
    def folder(self) -> Path:
        """The folder of a server whose data directory has the topic."""
        folder = self.directory / "table"
        folder.mkdir()
        topics.fill(folder / "data", self.events)
        return folder

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @cached_property
    def parquet(self) -> Path:
        """The same rows, all columns, in files of Spark's."""
        target = self.directory / "parquet"
        topics.write_parquet(self.spark, self.data, target)
        return target

    def turns(self, contenders: Mapping[str, Contender]) -> dict[str, Sample]:
        """The median of everybody, by turns in this session."""
        return take_turns(contenders, self.rounds, warm_up=self.warm_up)

    def fresh(self, name: str) -> Path:
        """A directory that nobody has used yet, for checkpoints or a server."""
        number = sum(1 for _ in self.directory.glob(f"{name}-*"))
        folder = self.directory / f"{name}-{number}"
        folder.mkdir()
        return folder


@contextmanager
def scene(settings: Settings) -> Iterator[Scene]:
    """A session as users get it; what it leaves on disk is in the scratch directory."""
    spark = session(
        MASTER,
        **{
            "spark.local.dir": str(settings.directory / "local"),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": str(settings.directory / "warehouse"),
        },
    )
    spark.sparkContext.setLogLevel("OFF")  # a query that is stopped says much
    register(spark)
    try:
        yield Scene(settings, spark, settings.scaled(EVENTS), settings.rounds)
    finally:
        spark.stop()


def register(spark: SparkSession) -> None:
    """Let the sources to compare with be known; they travel as they are."""
    # pyspark's copy of it has no types
    cloudpickle.register_pickle_by_value(plain)  # type: ignore[no-untyped-call]
    for source in (plain.TupleSource, plain.ClockSource, plain.StampSink):
        spark.dataSource.register(source)


@contextmanager
def served(folder: Path) -> Iterator[Place]:
    """``penstock serve`` on the data directory of a folder."""
    server = penstock_server.start(folder, "sync")
    try:
        yield server.place
    finally:
        server.stop()


def timed(
    scene: Scene,
    make: Callable[[], DataFrame],
    broker: Place | None = None,
    events: int | None = None,
) -> Callable[[], Sample]:
    """A contender: the whole frame to nowhere. ``load`` itself is not measured.

    ``events``: the rows of the frame, if they are not all there are. CPU is that of
    Spark and its workers; that of the broker is a fact beside it.
    """
    brokers = broker.pids if broker is not None else []
    count = scene.events if events is None else events

    def run() -> Sample:
        frame = make()
        all_, served = cpu_s([scene.pid]), cpu_s(brokers)
        wall = time.perf_counter()
        frame.write.format("noop").mode("overwrite").save()
        seconds = time.perf_counter() - wall
        served = cpu_s(brokers) - served
        return Sample(
            events=count,
            bytes=count * topics.PAYLOAD_BYTES,
            seconds=seconds,
            cpu_s=cpu_s([scene.pid]) - all_ - served,
            facts={"broker_cores": served / seconds},
        )

    return run
