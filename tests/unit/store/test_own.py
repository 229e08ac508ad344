from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from penstock.errors import DirectoryLocked, StoreNotStarted
from penstock.store import orphans
from penstock.store.own import OwnPostgres, _shorten
from tests.postgres import own_postgres

pytestmark = pytest.mark.slow

WAIT_S = 60.0
# Starts one and is killed: what it started stays behind.
LEAVER = """\
import os, signal, sys
from penstock.store.own import OwnPostgres
server = OwnPostgres(sys.argv[1])
print(server.start(), server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def one() -> Iterator[OwnPostgres]:
    """Made once, for making takes seconds; every test leaves it running or not."""
    with own_postgres() as server:
        yield server


@pytest.fixture
def server(one: OwnPostgres) -> OwnPostgres:
    one.start()
    return one


def ask(server: OwnPostgres, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        found = connection.execute(query.encode()).fetchone()
        return None if found is None else found[0]


def test_it_is_ready_for_the_capture_of_changes_when_it_starts(
    server: OwnPostgres,
) -> None:
    assert ask(server, "SHOW wal_level") == "logical"
    assert ask(server, "SHOW fsync") == "on"
    assert ask(server, "SELECT current_database()") == "penstock"
    assert ask(server, "SHOW server_encoding") == "UTF8"


def test_starting_what_runs_changes_nothing(server: OwnPostgres) -> None:
    pid = server.pid

    assert server.start() == server.url
    assert server.pid == pid


def test_url_holds_no_secret_and_the_secret_is_the_owners(server: OwnPostgres) -> None:
    path = server.directory / "password"
    secret = path.read_text().strip().rpartition(":")[2]

    assert secret not in server.url
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(server.url.partition("?")[0], password="wrong")


def test_data_and_port_outlive_a_stop(server: OwnPostgres) -> None:
    url = server.url
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 17 AS n")

    server.stop()
    assert server.pid is None
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    OwnPostgres(server.directory)  # naming it starts nothing
    server.start()

    assert server.url == url
    assert ask(server, "SELECT n FROM kept") == 17


def test_stop_ends_all_of_its_processes(server: OwnPostgres) -> None:
    mark = (server.directory / "mark").read_text().strip()
    uid = (server.directory / "cluster").stat().st_uid
    assert server.pid in orphans.processes_of(mark, uid)

    server.stop()

    assert orphans.processes_of(mark, uid) == []


def test_server_that_was_killed_starts_again(server: OwnPostgres) -> None:
    url, pid = server.url, server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)

    assert server.wait(WAIT_S) == -signal.SIGKILL
    assert server.pid is None
    server.start()

    assert (server.url, ask(server, "SELECT 1")) == (url, 1)


def test_server_whose_owner_was_killed_is_ended_and_started_again(
    server: OwnPostgres,
) -> None:
    server.stop()
    left = subprocess.run(
        [sys.executable, "-c", LEAVER, str(server.directory)],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    url, pid = left.stdout.split()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,), left.stderr

    server.start()

    mark = (server.directory / "mark").read_text().strip()
    uid = (server.directory / "cluster").stat().st_uid
    assert server.url == url
    assert int(pid) not in orphans.processes_of(mark, uid)
    assert ask(server, "SELECT 1") == 1


def test_pid_that_is_somebody_elses_by_now_is_no_hindrance(server: OwnPostgres) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    server.wait(WAIT_S)
    path = server.directory / "cluster" / "postmaster.pid"
    with subprocess.Popen(
        ["sleep", str(WAIT_S)], user=path.stat().st_uid if os.geteuid() == 0 else None
    ) as stranger:
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([f"{stranger.pid}\n", *lines[1:]]))

        server.start()
        alive = stranger.poll() is None
        stranger.kill()

    assert alive
    assert ask(server, "SELECT 1") == 1


def test_second_owner_is_refused(server: OwnPostgres) -> None:
    with pytest.raises(DirectoryLocked, match=f"process {os.getpid()}"):
        OwnPostgres(server.directory).start()

    assert ask(server, "SELECT 1") == 1


def test_port_that_is_taken_is_refused_if_it_was_asked_for(server: OwnPostgres) -> None:
    with tempfile.TemporaryDirectory() as directory:
        other = OwnPostgres(directory, port=server.port)
        with pytest.raises(StoreNotStarted, match=f"port {server.port} is in use"):
            other.start()

        # The one it had last may be another's: then any will do.
        Path(directory, "port").write_text(f"{server.port}\n")
        with OwnPostgres(directory) as free:
            assert free.port != server.port
            assert ask(free, "SELECT 1") == 1


def test_cluster_that_was_not_finished_is_made_again(
    server: OwnPostgres, tmp_path: Path
) -> None:
    half = tmp_path / "cluster.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("16\n")

    # As root, a folder that others cannot reach: the open folder is handed over.
    with OwnPostgres(tmp_path) as made:
        assert ask(made, "SELECT 1") == 1

    assert not half.exists()


def test_what_it_said_is_in_the_error(server: OwnPostgres) -> None:
    server.stop()
    version = server.directory / "cluster" / "PG_VERSION"
    version.write_text("9.6\n")
    try:
        with pytest.raises(StoreNotStarted, match="incompatible"):
            server.start()
    finally:
        version.write_text("16\n")

    server.start()
    assert ask(server, "SELECT 1") == 1


def test_log_keeps_its_newer_half(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old" * 100 + b"new" * 100)
    monkeypatch.setattr("penstock.store.own.LOG_BYTES", 600)
    _shorten(path)
    assert path.stat().st_size == 600

    monkeypatch.setattr("penstock.store.own.LOG_BYTES", 599)
    _shorten(path)
    assert path.read_bytes() == b"new" * 100
