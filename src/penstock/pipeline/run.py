"""The pipeline as a process: from its options to its end."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import PenstockError, QueryFailed
from penstock.pipeline import checkpoint, cluster
from penstock.pipeline.application import NAME, SETTINGS, Application, OpenStore
from penstock.pipeline.documents import COLLECTIONS
from penstock.pipeline.options import PipelineOptions
from penstock.spark import daemon
from penstock.spark.sessions import cores_of, java_options, session

# The last line of what Python says of an error, in a task or in a batch.
_ERROR = re.compile(
    r"^(?:(?:\w+\.)+(\w+)|(\w+(?:Error|Exception))): (.+)$", re.MULTILINE
)
# What Spark says of the query itself.
_PLAN = "\n=== Streaming Query ==="

QueryProgress = Mapping[str, Any]


@dataclass(slots=True)
class QueryCounts:
    """What the query has done; of what it said last."""

    events: int = 0
    """How far the tweets are in the firehose."""
    lag: int | None = None
    batches: int = 0
    batch_ms: int | None = None
    """How long the last one took."""

    def see(self, progress: QueryProgress | None) -> None:
        if progress is not None:
            self.batches = int(progress["batchId"]) + 1
            self.batch_ms = progress["durationMs"].get("triggerExecution")
            self.events, latest = (sum(_ends(progress, at)) for at in _ENDS)
            self.lag = max(latest - self.events, 0)


@dataclass(slots=True)
class Running:
    """The batch that runs, as far as looks now and then can tell."""

    batch: int | None = None
    """Its number; None if none runs."""
    _since_s: float = 0.0

    def see(self, done: int, *, is_running: bool, now_s: float) -> None:
        """Take note that so many are done, and whether one runs."""
        number = done if is_running else None
        if number != self.batch:
            self.batch, self._since_s = number, now_s

    def ms(self, now_s: float) -> int | None:
        """For how long it was seen to run."""
        return None if self.batch is None else round((now_s - self._since_s) * 1000)


def is_running(status: Mapping[str, Any]) -> bool:
    """Whether a query is at a batch, and does not just look whether there is one."""
    return bool(status["isTriggerActive"]) and bool(status["isDataAvailable"])


def is_idle(status: Mapping[str, Any], lag: int | None) -> bool:
    """Whether a query has worked off all that there is.

    Without a batch there is no lag; that a query waits it says after it has looked.
    """
    waits = str(status["message"]).startswith("Waiting")
    return waits and not status["isTriggerActive"] and not lag


def failed(name: str, text: str) -> QueryFailed:
    """The error for a query that ended with this text of Spark's."""
    text = text.partition(_PLAN)[0]
    found = _ERROR.findall(text)
    if found:
        return QueryFailed(name, ": ".join(filter(None, found[-1])))
    lines = (line.strip() for line in text.splitlines())
    return QueryFailed(name, next(filter(None, lines), "no reason is known"))


_ENDS = ("endOffset", "latestOffset")


def _ends(progress: QueryProgress, which: str) -> Iterable[int]:
    """The offsets of all topics of a query."""
    for source in progress["sources"]:
        offsets = source[which]
        if isinstance(offsets, str):
            offsets = json.loads(offsets)
        for topic, parts in (offsets or {}).items():
            if not topic.startswith("$"):
                yield from parts.values()


# A machine that starts everything at once lets Python's workers wait.
PATIENCE = {"spark.python.authenticate.socketTimeout": "60s"}
# What tasks import, beside the store; see spark/daemon.py.
IMPORTS = ("penstock.pipeline.task", "vaderSentiment.vaderSentiment")
WORKER_IMPORTS = f"spark.executorEnv.{daemon.IMPORTS}"
# Between two looks at the query.
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
    def ready(self, **info: object) -> None: ...
    def tell(
        self, *, events: int, lag: int | None = None, errors: int = 0, **more: object
    ) -> None: ...


def run(options: PipelineOptions, watcher: Watcher, *, master: str) -> None:
    """Run until the watcher says so, or until all is done.

    Raises QueryFailed, OldCheckpoint, SparkNotStarted.
    """
    checkpoint.check(options.checkpoint)
    opener = OpenStore(options.store)
    store = opener()
    try:
        store.prepare(COLLECTIONS)
    finally:
        store.close()
    clustered = cores_of(master) is None
    imports = ",".join((*IMPORTS, type(store).__module__))
    conf = {**settings(master), WORKER_IMPORTS: imports, **options.conf}
    spark = session(master, **conf)
    try:
        if clustered:
            cluster.settle(spark, options.conf, watcher.stopping.wait)
        drive(Application(spark, options, opener), options, watcher)
    finally:
        spark.stop()


def settings(master: str) -> dict[str, str]:
    """The settings of Spark that pay for this pipeline."""
    conf = {**SETTINGS, **PATIENCE, "spark.app.name": "penstock-pipeline"}
    if cores_of(master) is None:
        return {**conf, **cluster.SETTINGS}
    # Little Java runs often enough for its better compiler to pay.
    java = {"spark.driver.extraJavaOptions": java_options(short=True)}
    return {**conf, **java, "spark.sql.shuffle.partitions": "1"}


def drive(application: Application, options: PipelineOptions, watcher: Watcher) -> None:
    """Start the query, watch it, and stop it. Raises QueryFailed."""
    watch = _Watch(application, options, watcher)
    try:
        application.start()
        watcher.ready(queries=[NAME])
        watch.until_end()
        if options.available_now and not watcher.stopping.is_set():
            application.batch.end()
    finally:
        _let_finish(application.query)
        watch.tell()
        application.stop()


class _Watch:
    def __init__(
        self, application: Application, options: PipelineOptions, watcher: Watcher
    ) -> None:
        self._application = application
        self._options = options
        self._watcher = watcher
        self._counts = QueryCounts()
        self._running = Running()
        self._error: str | None = None

    def until_end(self) -> None:
        """Until it is told to stop, or the query has ended."""
        query = self._application.query
        assert query is not None, "it was started"
        active = True
        while active and not self._watcher.stopping.is_set():
            active = query.isActive
            self._check(query)
            self.tell()
            if active:
                if is_idle(query.status, self._counts.lag):
                    self._rest()
                self._watcher.stopping.wait(LOOK_S)

    def tell(self) -> None:
        """Say how far it is."""
        query = self._application.query
        progress: Any = None if query is None else query.lastProgress
        self._counts.see(progress)
        self._running.see(
            self._counts.batches,
            is_running=query is not None and is_running(query.status),
            now_s=time.monotonic(),
        )
        self._watcher.tell(
            events=self._counts.events,
            lag=self._counts.lag,
            errors=0 if self._error is None else 1,
            batches=self._counts.batches,
            batch_ms=self._counts.batch_ms,
            batch=self._running.batch,
            running_ms=self._running.ms(time.monotonic()),
            last_error=self._error,
        )

    def _check(self, query: StreamingQuery) -> None:
        over = not query.isActive and not self._options.available_now
        error = query.exception()
        if error is not None or over:
            failure = failed(NAME, str(error or "it has ended"))
            self._error = str(failure)
            raise failure from error

    def _rest(self) -> None:
        with suppress(PenstockError):  # it is tried again; batches say what is wrong
            self._application.batch.idle()


def _let_finish(query: StreamingQuery | None) -> None:
    """Wait for a batch that runs: cut off, it would be done again."""
    deadline_s = time.monotonic() + GRACE_S
    while query is not None and query.isActive and query.status["isTriggerActive"]:
        if time.monotonic() >= deadline_s:
            return
        time.sleep(0.05)
