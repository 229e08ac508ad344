"""The query on a real broker: each tweet counts once, whatever is repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from penstock.errors import QueryFailed
from penstock.pipeline.application import NAME, Application, OpenStore
from penstock.pipeline.documents import COLLECTIONS
from penstock.pipeline.options import BrokerAddress, PipelineOptions
from penstock.pipeline.run import drive
from penstock.pipeline.writing import Opener
from tests.serving import Serving, serving
from tests.spark.faulty_tweets import store as store_events
from tests.spark.faulty_tweets import stream
from tests.spark.pipeline_scene import (
    check,
    check_windows,
    events,
    generated,
    processed,
    publish,
    written_again,
)
from tests.spark.plain_pipeline import Expected
from tests.spark.sqlite_store import FailingStore, SqliteStore
from tests.spark.test_pipeline_run import Stored

pytestmark = pytest.mark.spark

Json = dict[str, Any]
WAIT_S = 120


class Told:
    """Who is told, and says when to end."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.is_ready = False
        self.status: Json = {}

    def ready(self, **told: object) -> None:
        self.is_ready = True

    def tell(self, **told: object) -> None:
        self.status = told


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(str(tmp_path / "store.db"))


@pytest.mark.parametrize(
    "kind", ["postgres", pytest.param("mongodb", marks=pytest.mark.deep)]
)
def test_everything_comes_to_what_plain_python_makes_of_it(
    kind: str, session: SparkSession, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Over real stores, in many batches, one of which is done twice."""
    url: str = request.getfixturevalue(f"{kind}_database")
    opener = OpenStore(url)
    with opener() as prepared:
        prepared.prepare(COLLECTIONS)
    payloads, panics = stream(1, 300), [3, 5, 7]
    began_ms = time.time_ns() // 1_000_000
    (tmp_path / "data").mkdir()
    store_events(tmp_path / "data", payloads, panics, began_ms - 60_000)

    with serving(tmp_path) as broker:
        told = run_now(session, broker, opener, tmp_path, max_per_trigger=150)
        read = len(payloads)
        forget_last_commit(tmp_path / "checkpoint" / NAME)
        payloads += stream(2, 50)
        publish(broker, payloads[read:])
        run_now(session, broker, opener, tmp_path, max_per_trigger=150)

        check(broker, Stored(url), payloads)
        check_windows(broker, Expected(payloads), sum(panics), began_ms)
    assert (told.status["events"], told.status["lag"]) == (read, 0)
    assert told.status["batches"] > 2
    assert told.status["last_error"] is None


def test_a_task_that_is_tried_again_has_written_nothing_twice(
    session: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    """Every task fails once it has written tweets, and once it has written users."""
    payloads = generated(1, 80)
    publish(broker, payloads)
    store = FailingStore(str(tmp_path / "store.db"))

    run_now(session, broker, store, tmp_path)

    check(broker, store, payloads)
    failed = store.failures()
    assert {name for name, _ in failed} == set(COLLECTIONS)
    assert max(attempt for _, attempt in failed) == 1, (
        "the third try of a task is right"
    )
    assert written_again(store, payloads) == {}


def test_the_last_windows_of_statistics_are_told_when_nothing_comes_any_more(
    session: SparkSession, broker: Serving, store: SqliteStore, tmp_path: Path
) -> None:
    payloads = generated(4, 80)
    publish(broker, payloads)
    count = Expected(payloads).count

    told = run_until(
        lambda told: (
            processed(broker) == (count, count) and told.status.get("lag") == 0
        ),
        session,
        options_of(broker, tmp_path, trigger_s=0.2),
        store,
    )

    check(broker, store, payloads)
    assert told.is_ready
    (logger, *_) = events(broker, "logger_stats")
    assert logger["text"].startswith("[StatisticWorker spark - LoggerWorker")


def test_a_query_that_fails_is_named_with_its_error(
    session: SparkSession, broker: Serving, tmp_path: Path
) -> None:
    publish(broker, generated(5, 10))
    nowhere = SqliteStore(str(tmp_path / "no such folder" / "store.db"))

    with pytest.raises(QueryFailed) as caught:
        run_now(session, broker, nowhere, tmp_path)

    assert caught.value.query == NAME
    assert caught.value.reason == "OperationalError: unable to open database file"


def run_now(
    session: SparkSession,
    broker: Serving,
    opener: Opener,
    directory: Path,
    **more: Any,
) -> Told:
    told = Told()
    options = options_of(broker, directory, available_now=True, **more)
    drive(Application(session, options, opener), options, told)
    return told


def run_until(
    done: Callable[[Told], bool],
    session: SparkSession,
    options: PipelineOptions,
    store: SqliteStore,
) -> Told:
    """Run until a condition is met, which another thread looks at."""
    told, ended = Told(), threading.Event()

    def look() -> None:
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s and not ended.wait(0.1):
            if done(told):
                break
        told.stopping.set()

    looking = threading.Thread(target=look)
    looking.start()
    try:
        drive(Application(session, options, store), options, told)
    finally:
        ended.set()
        looking.join()
    assert done(told), "it did not happen in time"
    return told


def options_of(broker: Serving, directory: Path, **more: Any) -> PipelineOptions:
    return PipelineOptions(
        broker=BrokerAddress(server=f"127.0.0.1:{broker.ports['native']}"),
        store="",
        checkpoint=str(directory / "checkpoint"),
        **more,
    )


def forget_last_commit(checkpoint: Path) -> None:
    """As if the process had been killed before Spark noted that the batch was done."""
    commits = [
        path for path in (checkpoint / "commits").iterdir() if path.stem.isdigit()
    ]
    max(commits, key=lambda path: int(path.stem)).unlink()
