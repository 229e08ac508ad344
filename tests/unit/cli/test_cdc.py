"""``penstock cdc``: a real PostgreSQL and a server; processes are in tests/process."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import cli
from penstock.client import connect
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cdc", *arguments])


class Life(threading.Thread):
    """Changes a table as soon as the command is ready; ends it when all is told."""

    def __init__(self, url: str, ready: Path, status: Path) -> None:
        super().__init__(daemon=True)
        self.told: dict[str, Any] = {}
        self._url = url
        self._ready = ready
        self._status = status

    def run(self) -> None:
        try:
            self._live()
        finally:
            if self._ready.exists():  # the command has the signal, not the tests
                os.kill(os.getpid(), signal.SIGTERM)

    def _live(self) -> None:
        assert wait_until(self._ready.exists), "it is not ready"
        self.told = json.loads(self._ready.read_bytes())
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("""INSERT INTO tweets VALUES ('a', 1, '{"n": 1}')""")
            connection.execute("""UPDATE tweets SET version = 2, doc = '{"n": 2}'""")
            connection.execute("DELETE FROM tweets")
        assert wait_until(self._all_told), "not everything was told"

    def _all_told(self) -> bool:
        if not self._status.exists():
            return False
        events: int = json.loads(self._status.read_bytes())["events"]
        return events == 3


def wait_until(true: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + 60
    while not true():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run", "--collections", "t"], "Missing option '--store'"),
        (["run", "--store", "postgresql://h/d"], "Missing option '--collections'"),
        (
            ["run", "--store", "postgresql://h/d", "--collections", " ,"],
            "--collections names nothing",
        ),
        (
            ["run", "--store", "mysql://me:secret@h/d", "--collections", "t"],
            "it has to begin with postgresql:// or mongodb://",
        ),
        (
            ["run", "--store", "postgresql://h/d", "--collections", "t" * 2000],
            "has 2000 bytes",
        ),
        (
            ["run", "--store", "postgresql://h/d", "--collections", "t"]
            + ["--name", "no name"],
            "cannot name a slot",
        ),
        (
            ["run", "--store", "postgresql://h/d", "--collections", "t"]
            + ["--message", "u=text"],
            "u is not one of --collections",
        ),
        (["drop", "--store", "ftp://h/d"], "it has to begin with"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], text: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert text in result.output
    assert "secret" not in result.output


def test_changes_are_published_and_told_of(
    server: LocalServer, postgres_database: str, tmp_path: Path
) -> None:
    status, ready = tmp_path / "status.json", tmp_path / "ready.json"
    life = Life(postgres_database, ready, status)
    life.start()

    result = run(
        *("run", "--store", postgres_database, "--data", str(server.data)),
        *("--collections", "tweets, users", "--document", "doc", "--create"),
        *("--name", "cli", "--prefix", "db."),
        *("--message", "tweets=n", "--priority", "tweets=n:2"),
        *("--ready-file", str(ready), "--status-file", str(status)),
    )

    assert result.exit_code == 0, result.output
    assert life.told["store"].startswith("postgresql://127.0.0.1")
    found = json.loads(status.read_bytes())
    assert (found["events"], found["errors"], found["inserts"]) == (
        *(3, 0, {"tweets": 1}),
    )
    told = events(server, "db.tweets")
    payloads = [json.loads(event.payload) for event in told]
    assert [one["msg"] for one in payloads] == [1, 2, 2]
    assert [event.priority for event in told] == [0, 1, 1]
    assert [(one["op"], one["before"], one["after"]) for one in payloads] == [
        ("insert", None, {"n": 1}),
        ("update", {"n": 1}, {"n": 2}),
        ("delete", {"n": 2}, None),
    ]
    assert "dropped the capture cli" in drop_later(postgres_database, "cli").output
    assert "keeps nothing" in drop_later(postgres_database, "cli").output


def events(server: LocalServer, topic: str) -> list[Any]:
    with connect(server.data) as client:
        batches = client.fetch(topic, 0, 1 << 20).batches
        return [event for batch in batches for event in batch.events()]


def drop_later(url: str, name: str) -> Result:
    """Drop it as soon as PostgreSQL has noticed that nobody reads."""
    for _ in range(100):
        result = run("drop", "--store", url, "--name", name)
        if "is active" not in result.output:
            assert result.exit_code == 0, result.output
            return result
    raise AssertionError(result.output)


def test_mongodb_keeps_nothing_that_could_be_dropped() -> None:
    result = run("drop", "--store", "mongodb://me:secret@nowhere/db")

    assert result.exit_code == 0
    assert result.output == "mongodb://nowhere/db keeps nothing for a capture cdc\n"
