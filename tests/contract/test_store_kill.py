"""A store whose server is killed in the middle of a write loses and doubles nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from penstock.store import store as stores
from penstock.store.own import OwnPostgres
from tests.contract.stores import kept, rows
from tests.mongod import own_mongod
from tests.postgres import own_postgres

pytestmark = pytest.mark.slow

ROUNDS = 12
KEYS = 1_500
WAIT_S = 120.0

Server = tuple[str, Callable[[], object]]


@contextlib.contextmanager
def killed_postgres() -> Iterator[Server]:
    with own_postgres() as server:
        yield server.url, lambda: kill_and_start(server)


@contextlib.contextmanager
def killed_mongod() -> Iterator[Server]:
    with own_mongod() as server:

        def kill() -> None:
            server.kill()
            server.start()

        yield server.url, kill


def kill_and_start(server: OwnPostgres) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert server.wait(WAIT_S) == -signal.SIGKILL
    server.start()


@pytest.mark.parametrize("killed", [killed_postgres, killed_mongod])
def test_writer_outlives_a_server_that_is_killed(
    killed: Callable[[], contextlib.AbstractContextManager[Server]],
) -> None:
    """And what was confirmed to it is there after a kill."""
    done: list[int] = []
    failed: list[BaseException] = []

    def write(url: str) -> None:
        try:
            with stores.open(url, retry_s=WAIT_S) as store:
                for version in range(ROUNDS):
                    store.upsert("tweets", list(rows(KEYS, version=version)))
                    done.append(version)
        except BaseException as error:
            failed.append(error)
            raise

    def reached(turn: int) -> bool:
        return len(done) >= turn or bool(failed)

    with killed() as (url, kill):
        writer = threading.Thread(target=write, args=(url,))
        writer.start()
        for turn in (1, 3, 5):
            wait_for(partial(reached, turn))
            in_between = len(done) < ROUNDS and not failed
            kill()
            assert in_between, f"the writer is too quick for this test, or {failed}"
        writer.join(WAIT_S)
        kill()
        with stores.open(url) as store:
            found = kept(store, "tweets")
            again = store.upsert("tweets", list(rows(KEYS, version=ROUNDS - 1)))

    assert not failed and done == list(range(ROUNDS))
    assert len(found) == KEYS
    assert {version for version, _ in found.values()} == {ROUNDS - 1}
    assert again == 0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)
