"""The pipeline as a process: from its options to its end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError
from penstock.pipeline import samples
from penstock.pipeline.application import (
    COLLECTIONS,
    SETTINGS,
    Application,
    OpenStore,
)
from penstock.pipeline.options import PipelineOptions
from penstock.pipeline.samples import TICK, sample
from penstock.pipeline.watch import Counts, Ticks, failed
from penstock.spark.sessions import cores_of, session

# A machine that starts everything at once lets Python's workers wait.
PATIENCE = {"spark.python.authenticate.socketTimeout": "60s"}
# Of users and tags, on a cluster: 200 would be Spark's choice, each with a state of its
# own, and they stay as many as they were in the first batch.
CLUSTER_PARTITIONS = 8
# Between two looks at the queries.
LOOK_S = 0.5
# A batch that runs may end, before it is cut off.
GRACE_S = 5.0


class Stopping(Protocol):
    """An event of ``threading``, as far as it matters here."""

    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


class Watcher(Protocol):
    """Who is told how it goes, and says when to end."""

    @property
    def stopping(self) -> Stopping: ...
    def ready(self, **told: object) -> None: ...
    def tell(
        self, *, events: int, lag: int | None = None, errors: int = 0, **more: object
    ) -> None: ...


def run(options: PipelineOptions, watcher: Watcher, *, master: str) -> None:
    """Run until the watcher says so, or until all is done. Raises QueryFailed."""
    opener = OpenStore(options.store)
    store = opener()
    try:
        store.prepare(COLLECTIONS)
    finally:
        store.close()
    conf = {**SETTINGS, **PATIENCE, "spark.app.name": "penstock-pipeline"}
    if cores_of(master) is None:
        conf["spark.sql.shuffle.partitions"] = str(CLUSTER_PARTITIONS)
    spark = session(master, **conf)
    try:
        drive(Application(spark, options, opener), options, watcher)
    finally:
        spark.stop()


def drive(application: Application, options: PipelineOptions, watcher: Watcher) -> None:
    """Start the queries, watch them, and stop them. Raises QueryFailed."""
    watch = _Watch(application.queries, options, watcher)
    try:
        application.start()
        watcher.ready(queries=sorted(application.queries))
        watch.until_end()
        if options.available_now and not watcher.stopping.is_set():
            application.start_statistics()
            watch.until_end()
    finally:
        _let_finish(application.queries)
        watch.tell()
        application.stop()


class _Watch:
    def __init__(
        self,
        queries: Mapping[str, StreamingQuery],
        options: PipelineOptions,
        watcher: Watcher,
    ) -> None:
        self._queries = queries
        self._options = options
        self._watcher = watcher
        self._counts = Counts()
        self._ticks = Ticks()
        self._error: str | None = None

    def until_end(self) -> None:
        """Until somebody says so, or every query has ended."""
        active = True
        while active and not self._watcher.stopping.is_set():
            active = any(query.isActive for query in self._queries.values())
            self._look()
            if active:
                self._watcher.stopping.wait(LOOK_S)

    def tell(self) -> None:
        """Say how far it is."""
        progress: dict[str, Any] = {
            name: query.lastProgress for name, query in self._queries.items()
        }
        self._counts.see(progress)
        self._watcher.tell(
            events=self._counts.events,
            lag=self._counts.lag,
            errors=0 if self._error is None else 1,
            batches=self._counts.batches,
            last_error=self._error,
        )

    def _look(self) -> None:
        for name, query in self._queries.items():
            self._check(name, query)
        self.tell()
        statistics = self._queries.get("statistics")
        if statistics is not None and not self._options.available_now:
            progress: Any = statistics.lastProgress
            if self._ticks.due(progress):
                self._tick()

    def _check(self, name: str, query: StreamingQuery) -> None:
        over = not query.isActive and not self._options.available_now
        error = query.exception()
        if error is not None or over:
            failure = failed(name, str(error or "it has ended"))
            self._error = str(failure)
            raise failure from error

    def _tick(self) -> None:
        try:
            with self._options.broker.connect() as client:
                client.publish(samples.TOPIC, [sample(TICK, None, 0)])
        except PenstockError:
            return  # it is tried again; queries say themselves what is wrong
        self._ticks.written()


def _let_finish(queries: Mapping[str, StreamingQuery]) -> None:
    """Wait for batches that run: cut off, they would be done again."""
    deadline_s = time.monotonic() + GRACE_S
    for query in queries.values():
        while query.isActive and query.status["isTriggerActive"]:
            if time.monotonic() >= deadline_s:
                return
            time.sleep(0.05)
