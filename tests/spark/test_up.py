"""``penstock up`` whole: from the source of tweets to the subscribers, parts killed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from penstock.store.own import OwnPostgres
from tests.serving import serving
from tests.spark.test_pipeline_run import Stored
from tests.spark.up_books import check_everything
from tests.spark.up_scene import WAIT_S, Running, descendants, running, until_gone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Tweets with every kind of fault among the first of them.
SEED = 3
QUICK = ("--seed", str(SEED), "--trigger", "500ms")


def test_nothing_is_lost_or_doubled_whichever_part_is_killed(tmp_path: Path) -> None:
    options = ("--count", "1500", "--rate", "40", *QUICK)
    with running(tmp_path, *options) as up:
        up.until_worked("ingest", 150)
        up.kill("ingest")
        up.until_worked("ingest", 400)
        # The rest of the stream comes when there is somebody to be killed meanwhile.
        with silent(up):
            up.until_worked("spark", 350)
            up.until_worked("cdc", 350)
            telnet = session(up)
        up.until_worked("ingest", 800)
        with silent(up), telnet:
            assert all(telnet.readline().startswith(b"tweet: ") for _ in range(20))
            up.kill("spark")
            up.kill("cdc")
            up.until_worked("spark", 700)
        up.until_worked("ingest", 1100)
        with silent(up):
            kill_postgres(up)
            up.until_worked("spark", 1000)
        up.until_worked("ingest", 1400)
        with silent(up):
            up.kill("store")
            up.until_worked("spark", 1300)
        up.until_worked("ingest", 1700)
        with silent(up):
            up.kill("broker")
        code = up.wait()

    assert code == 0, up.said()
    assert "all went well" in up.said()
    check_own(tmp_path, 1500)


def test_a_run_goes_on_where_another_one_was_ended(tmp_path: Path) -> None:
    options = ("--count", "300", "--rate", "30", *QUICK)
    with running(tmp_path, *options) as up:
        up.until_ready("ingest", "spark")
        family = descendants(up.process.pid)
        up.process.send_signal(signal.SIGINT)
        code = up.wait()
        assert code == 1, up.said()
        assert "nothing is compared" in up.said()
        assert len(family) > 9
        until_gone(family)
    with running(tmp_path, *options) as up:
        up.until_worked("spark", 1)
        family = descendants(up.process.pid)
        up.process.kill()
        up.process.wait()
        # It waits for those that are left.
        with running(tmp_path, *options) as last:
            until_gone(family)
            code = last.wait()

    assert code == 0, last.said()
    assert "all went well" in last.said()
    check_own(tmp_path, 300)


def test_everything_goes_to_a_mongodb_of_ones_own(
    mongodb_database: str, tmp_path: Path
) -> None:
    options = ("--count", "200", "--rate", "200", *QUICK)
    with running(tmp_path, *options, "--store", mongodb_database) as up:
        code = up.wait()

    assert code == 0, up.said()
    assert "all went well" in up.said()
    with serving(tmp_path) as broker:
        check_everything(broker, Stored(mongodb_database), seed=SEED, count=200)


def test_spark_may_be_a_cluster(tmp_path: Path) -> None:
    """One inside the driver; for one of its own see test_pipeline_cluster."""
    options = ("--count", "100", "--rate", "100", *QUICK)
    where = (
        "--master",
        "local-cluster[2,1,512]",
        "--conf",
        "spark.executor.memory=512m",
    )
    with running(tmp_path, *options, *where) as up:
        code = up.wait()

    assert code == 0, up.said()
    assert "all went well" in up.said()
    check_own(tmp_path, 100)


@contextmanager
def silent(up: Running) -> Iterator[None]:
    """No tweets come meanwhile; then the source is killed as well, and begins anew.

    It would send at once what was due.
    """
    pid = up.pid("source")
    os.kill(pid, signal.SIGSTOP)
    yield
    os.kill(pid, signal.SIGKILL)
    up.until(lambda: up.is_back("source", pid), "the source is back")


def session(up: Running) -> BinaryIO:
    """What the control port says to somebody who wants to see tweets."""
    port = up.ready("broker")["ports"]["control"]
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as telnet:
        telnet.sendall(b"twitter\r\n")
        lines = telnet.makefile("rb")
    assert lines.readline().startswith(b"Type `twitter`")
    assert lines.readline() == b"[Command] run :twitter\r\n"
    return lines


def kill_postgres(up: Running) -> None:
    """End the server itself, and wait until there is another."""
    was = up.pid("store")
    text = (up.data / "up" / "store" / "cluster" / "postmaster.pid").read_text()
    os.kill(int(text.split()[0]), signal.SIGKILL)
    up.until(lambda: up.is_back("store", was), "the store is back")


def check_own(directory: Path, count: int) -> None:
    """Everything is there once, in the data that a run has left."""
    with (
        serving(directory) as broker,
        OwnPostgres(directory / "data" / "up" / "store") as postgres,
    ):
        check_everything(broker, Stored(postgres.url), seed=SEED, count=count)
