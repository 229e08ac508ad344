"""``penstock up`` whole: from the source of tweets to the subscribers, parts killed."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import BinaryIO

import pytest

from penstock.spark.sessions import LOOPBACK
from penstock.store.own import OwnPostgres
from tests.effort import DEEP, effort
from tests.mongod import Mongod, own_mongod
from tests.serving import serving
from tests.spark.standalone import Cluster, cluster, command_of
from tests.spark.test_pipeline_run import Stored
from tests.spark.up_books import check_everything
from tests.spark.up_scene import WAIT_S, Running, descendants, running, until_gone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Tweets with every kind of fault among the first of them.
SEED = 3
QUICK = ("--seed", str(SEED), "--trigger", "500ms")
COUNT = effort(400, 1200)
KILLS_SEED = Random().getrandbits(32) if DEEP else 1
# How many times something is killed: each part once, some of them at the same time.
TIMES = effort(3, 7)
# As little as goes, for workers as small as those here.
SMALL = (
    "spark.executor.memory=512m",
    "spark.cores.max=3",
    "spark.sql.shuffle.partitions=2",
)
IsBack = Callable[[], bool]


def test_nothing_is_lost_or_doubled_whichever_part_is_killed(tmp_path: Path) -> None:
    """On a cluster, with a MongoDB: every part once, in any order, at any moment."""
    random = Random(KILLS_SEED)
    workers = tmp_path / "cluster"
    with own_mongod() as store, cluster(workers, [LOOPBACK] * effort(2, 3)) as spark:
        options = ("--count", str(COUNT), "--rate", "40", *QUICK)
        place = ("--store", store.url, "--master", spark.address)
        conf = (f"--conf={setting}" for setting in SMALL)
        with running(tmp_path, *options, *place, *conf) as up:
            kills: dict[str, Callable[[], IsBack]] = {
                "ingest": lambda: up.kill("ingest"),
                "spark": lambda: up.kill("spark"),
                "cdc": lambda: up.kill("cdc"),
                "broker": lambda: up.kill("broker"),
                "subscriber": lambda: kill_subscriber(up, "tweets"),
                "worker": lambda: kill_worker(spark),
                "store": lambda: restart(store),
            }
            names = random.sample(list(kills), len(kills))
            # Two streams; the last of them are left for who was killed last.
            moments = sorted(random.sample(range(50, 2 * COUNT - 400), TIMES))
            plan = [(one, names[at::TIMES]) for at, one in enumerate(moments)]
            with noted(f"seed {KILLS_SEED}: {plan}"):
                for moment, killed in plan:
                    up.until_worked("ingest", moment)
                    with silent(up):
                        back = {name: kills[name]() for name in killed}
                        for name, is_back in back.items():
                            up.until(is_back, f"{name} is back")
                code = up.wait()

        with noted(f"seed {KILLS_SEED}: {plan}"):
            assert code == 0, up.said()
            assert "all went well" in up.said()
            with serving(tmp_path) as broker:
                check_everything(broker, Stored(store.url), seed=SEED, count=COUNT)


@pytest.mark.deep
def test_a_run_goes_on_where_another_one_was_ended(tmp_path: Path) -> None:
    """With the PostgreSQL that comes along, which is killed, too."""
    # A stream that is not over before Spark has begun, also on a busy machine.
    count = 2000
    options = ("--count", str(count), "--rate", "30", *QUICK)
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
        with silent(up), session(up) as telnet:
            assert all(telnet.readline().startswith(b"tweet: ") for _ in range(20))
            kill_postgres(up)
            up.until(up.kill("store"), "the store is back")
        family = descendants(up.process.pid)
        up.process.kill()
        up.process.wait()
        # It waits for those that are left.
        with running(tmp_path, *options) as last:
            until_gone(family)
            code = last.wait()

    assert code == 0, last.said()
    assert "all went well" in last.said()
    with (
        serving(tmp_path) as broker,
        OwnPostgres(tmp_path / "data" / "up" / "store") as postgres,
    ):
        check_everything(broker, Stored(postgres.url), seed=SEED, count=count)


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


def kill_subscriber(up: Running, topic: str) -> IsBack:
    was = subscribers(up, topic)
    for pid in was:
        os.kill(pid, signal.SIGKILL)
    return lambda: bool(subscribers(up, topic) - was)


def kill_worker(spark: Cluster) -> IsBack:
    """It does not come back: others do its work."""
    spark.kill(0)
    return lambda: True


def subscribers(up: Running, topic: str) -> set[int]:
    words = f"subscribe\0{topic}\0"
    return {pid for pid in descendants(up.process.pid) if words in command_of(pid)}


def restart(store: Mongod) -> IsBack:
    store.kill()
    store.start()
    return lambda: True


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Have a failure say how to repeat it."""
    try:
        yield
    except BaseException as error:
        error.add_note(text)
        raise
