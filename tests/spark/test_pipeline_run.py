"""``penstock pipeline run`` as a process, with a real store: killed at any time."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli
from penstock.cli.pipeline import PATIENCE_S
from penstock.store import store
from tests.postgres import own_postgres
from tests.serving import PENSTOCK, Serving, serving
from tests.spark.pipeline_scene import check, events, generated, processed, publish
from tests.spark.plain_pipeline import Expected

pytestmark = pytest.mark.spark

WAIT_S = 240


class Stored:
    """What a store holds, by its URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    def read(self, collection: str) -> dict[str, tuple[int, dict[str, Any]]]:
        with store.open(self._url) as opened:
            return {key: (at, doc) for key, at, doc in opened.read(collection)}

    def count(self, collection: str) -> int:
        with store.open(self._url) as opened:
            return opened.count(collection)


@pytest.mark.slow
@pytest.mark.deep
def test_nothing_is_lost_or_doubled_however_often_it_is_killed(
    postgres_database: str, tmp_path: Path
) -> None:
    payloads = generated(6, 600)
    stored = Stored(postgres_database)
    with serving(tmp_path) as broker:
        publish(broker, payloads[:200])
        with pipeline(broker, postgres_database, tmp_path) as process:
            until(lambda: stored.count("tweets") > 0, process)
            process.kill()
        publish(broker, payloads[200:400])
        told = len(events(broker, "hashtag_stats"))
        with pipeline(broker, postgres_database, tmp_path) as process:
            until(lambda: len(events(broker, "hashtag_stats")) > told, process)
            process.kill()
        expected = Expected(payloads)
        both = expected.count, expected.count

        with pipeline(broker, postgres_database, tmp_path) as process:
            publish(broker, payloads[400:])
            until(lambda: totals(stored) == expected.count, process)
            until(lambda: tags(broker) == expected.tags, process)
            until(lambda: status(tmp_path).get("lag") == 0, process)
            process.kill()  # nothing more comes, and the last window is not over
        with pipeline(broker, postgres_database, tmp_path) as process:
            until(lambda: processed(broker) == both, process)
            process.terminate()
            code = process.wait(WAIT_S)

        assert code == 0, log(tmp_path)
        check(broker, stored, payloads)
        assert status(tmp_path)["last_error"] is None
        assert not (tmp_path / "pipeline-ready.json").exists()
        crashes = [one["crashes"] for one in events(broker, "logger_stats")]
        assert sum(crashes) == 0


def test_a_store_that_refuses_ends_the_command_and_is_named(
    postgres_url: str, tmp_path: Path
) -> None:
    nowhere = postgres_url.replace("?", "-that-is-not-there?")
    place = ["--store", nowhere, "--checkpoint", str(tmp_path / "checkpoint")]
    place += ["--data", str(tmp_path)]

    ended = CliRunner().invoke(cli, ["pipeline", "run", *place])

    assert ended.exit_code == 2
    assert "that-is-not-there" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.deep
def test_it_ends_soon_although_broker_and_store_are_gone(tmp_path: Path) -> None:
    with own_postgres() as server, serving(tmp_path) as broker:
        publish(broker, generated(6, 100))
        with pipeline(broker, server.url, tmp_path) as process:
            until(lambda: Stored(server.url).count("tweets") > 0, process)
            publish(broker, generated(7, 100))
            server.stop()
            broker.kill()
            began_s = time.monotonic()
            process.terminate()
            process.wait(WAIT_S)
            took_s = time.monotonic() - began_s

    # It would look for the broker for a minute, and for the store as well.
    assert took_s < 2 * PATIENCE_S, log(tmp_path)


@contextmanager
def pipeline(
    broker: Serving, url: str, directory: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The process, once its query runs; dead at the end."""
    ready_file = directory / "pipeline-ready.json"
    ready_file.unlink(missing_ok=True)  # of one that was killed
    command = [*PENSTOCK, "pipeline", "run", "--store", url, "--trigger", "200ms"]
    command += ["--server", f"127.0.0.1:{broker.ports['native']}"]
    command += ["--checkpoint", str(directory / "checkpoint")]
    command += ["--max-per-trigger", "100"]
    command += ["--ready-file", str(ready_file)]
    command += ["--status-file", str(directory / "status.json")]
    with (directory / "pipeline.log").open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        until(ready_file.exists, process, directory)
        yield process
    finally:
        process.kill()
        process.wait()


def until(
    done: Callable[[], bool],
    process: subprocess.Popen[bytes],
    directory: Path | None = None,
) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not done():
        code = process.poll()
        assert code is None, f"ended with {code}: {log(directory) if directory else ''}"
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.1)


def totals(stored: Stored) -> int:
    """Tweets that the totals of users know of."""
    found = stored.read("users_engagements").values()
    return sum(document["count"] for _, document in found)


def tags(broker: Serving) -> dict[str, int]:
    return {one["tag"]: one["count"] for one in events(broker, "hashtag_stats")}


def status(directory: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads((directory / "status.json").read_bytes())
    except FileNotFoundError:
        return {}
    return told


def log(directory: Path) -> str:
    return (directory / "pipeline.log").read_text()
