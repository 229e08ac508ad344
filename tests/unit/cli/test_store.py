from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import cli
from penstock.store import store as stores
from tests.serving import PENSTOCK

pytestmark = pytest.mark.slow

WAIT_S = 60.0


@pytest.fixture
def url(postgres_database: str) -> str:
    with stores.open(postgres_database) as store:
        store.prepare(["users"])
        store.upsert("tweets", [(key, 4, b'{"t": "\xc3\xbc"}') for key in "abc"])
    return postgres_database


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["store", *arguments])


def test_documents_are_counted(url: str) -> None:
    assert run("count", url).stdout.split() == ["tweets", "3", "users", "0"]
    assert run("count", url, "users").stdout.split() == ["users", "0"]


def test_no_collections_are_said(postgres_database: str) -> None:
    assert run("count", postgres_database).stdout == "no collections\n"


def test_documents_are_shown_as_json_lines(url: str) -> None:
    shown = run("show", url, "tweets", "--limit", "2").stdout.splitlines()

    assert [json.loads(line)["key"] for line in shown] == ["a", "b"]
    assert json.loads(shown[0]) == {"key": "a", "version": 4, "doc": {"t": "ü"}}


def test_collection_that_is_not_there_is_refused(url: str) -> None:
    result = run("show", url, "tweet")

    assert result.exit_code == 2
    assert "there is no collection tweet" in result.stderr
    assert "tweets, users" in result.stderr


def test_url_that_is_none_is_refused_in_one_line() -> None:
    result = run("count", "ftp://u:secret@h/db")

    assert result.exit_code == 2
    assert "ftp://h/db" in result.stderr
    assert "secret" not in result.output


class Running:
    """``penstock store run`` over one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        (self.directory / "ready").unlink(missing_ok=True)
        command = [*PENSTOCK, "store", "run", "--data", str(self.directory / "data")]
        command += ["--ready-file", str(self.directory / "ready")]
        command += ["--status-file", str(self.directory / "status")]
        with (self.directory / "out").open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        found: dict[str, Any] = self.wait_for("ready")
        return found

    def wait_for(self, name: str, **least: int) -> Any:
        deadline = time.monotonic() + WAIT_S
        while True:
            assert time.monotonic() < deadline, self.said()
            assert self.process is None or self.process.poll() is None, self.said()
            path = self.directory / name
            found = json.loads(path.read_bytes()) if path.exists() else {}
            if found and all(found[key] >= value for key, value in least.items()):
                return found
            time.sleep(0.01)

    def end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)

    def said(self) -> str:
        return (self.directory / "out").read_text()


@pytest.fixture
def running() -> Iterator[Running]:
    with tempfile.TemporaryDirectory() as directory:
        found = Running(Path(directory))
        yield found
        assert found.process is not None
        if found.process.poll() is None:
            found.end(signal.SIGTERM)


def test_store_runs_until_it_is_told_to_end(running: Running) -> None:
    ready = running.start()
    with stores.open(ready["url"]) as store:
        store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")])
    status = running.wait_for("status", events=2)

    code = running.end(signal.SIGTERM)

    assert code == 0, running.said()
    assert running.said() == ready["url"] + "\n"
    assert (status["events"], status["errors"]) == (2, 0)
    assert not (running.directory / "ready").exists()
    with pytest.raises(FileNotFoundError):
        (running.directory / "data" / "cluster" / "postmaster.pid").stat()


def test_store_that_was_killed_goes_on_at_the_same_url(running: Running) -> None:
    url = running.start()["url"]
    with stores.open(url) as store:
        store.upsert("tweets", [("a", 1, b"{}")])

        running.end(signal.SIGKILL)

        assert running.start()["url"] == url
        assert store.upsert("tweets", [("a", 1, b"{}"), ("b", 1, b"{}")]) == 1


def test_end_of_postgresql_ends_the_command(running: Running) -> None:
    running.start()
    path = running.directory / "data" / "cluster" / "postmaster.pid"
    os.kill(int(path.read_text().splitlines()[0]), signal.SIGKILL)

    assert running.process is not None
    assert running.process.wait(WAIT_S) == 2
    assert "PostgreSQL ended with -9" in running.said()
