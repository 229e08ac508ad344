"""Documents change while everything is killed in turn: each change is told once.

What has to be there is what the writer has put down in the database itself, in the same
transactions.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from penstock.client import Client, connect
from penstock.store.own import OwnPostgres
from tests.effort import effort
from tests.mongod import Mongod, own_mongod
from tests.postgres import own_postgres
from tests.process.cdc_writers import (
    COLLECTIONS,
    Made,
    MongoWriter,
    PostgresWriter,
    State,
    Writer,
)
from tests.process.programs import Program
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

SEED = 11
# Changes in small transactions; and in a single one, more than what is stored at once.
COUNT = effort(1500, 3000)
BULK = 6000
KILLS = 6
PATIENCE_S = 120.0


class Payload(msgspec.Struct):
    op: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    source: dict[str, Any]


def stored(server: Serving, topic: str) -> Iterator[tuple[str, str, Payload]]:
    """Id, key and content of the events."""
    decode = msgspec.json.Decoder(Payload).decode
    with connect(server.data) as client:
        for part in client.fetch_all(topic, 0, 1 << 40):
            for batch in part.batches:
                for event in batch.events():
                    assert event.key is not None
                    yield event.id, event.key.decode(), decode(event.payload)


def count(client: Client) -> int:
    found: Any = client.ask("topics")
    return sum(
        one["end_offset"] for one in found["topics"] if one["name"] in COLLECTIONS
    )


def wait_for_events(server: Serving, capture: Program, enough: float) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    with connect(server.data) as client:
        while count(client) < enough:
            assert time.monotonic() < deadline_s, capture.log.read_text()
            time.sleep(0.01)


@contextmanager
def captured(directory: Path, url: str) -> Iterator[tuple[Serving, Program]]:
    quiet = ("--no-line", "--no-json", "--no-maze")
    with serving(directory, *quiet) as server:
        capture = Program(
            directory,
            *("cdc", "cdc", "run", "--store", url, "--data", str(server.data)),
            *("--collections", ",".join(COLLECTIONS)),
        )
        with capture:
            capture.start()
            yield server, capture


def disturb(
    server: Serving, capture: Program, writer: Writer, restart: Callable[[], None]
) -> None:
    """Kill all of them in turn while the writer works, and let it finish."""

    def again(one: Serving | Program) -> Callable[[], None]:
        def kill_and_start() -> None:
            one.kill()
            one.start()

        return kill_and_start

    chance = random.Random(SEED)
    acts = [again(capture), again(server), restart] * (KILLS // 3)
    chance.shuffle(acts)
    writer.start()
    for number, act in enumerate(acts):
        share = (number + chance.random()) / KILLS * (COUNT + BULK)
        wait_for_events(server, capture, share)
        act()
    writer.disturbed.set()
    writer.join(PATIENCE_S)
    assert not writer.is_alive(), f"{writer.made} changes made"


def check(
    server: Serving,
    capture: Program,
    history: list[Made],
    state: State,
    *,
    told: Callable[[Made], Made],
) -> None:
    """``told``: what the source can tell of a change."""
    wait_for_events(server, capture, len(history))
    ids: set[str] = set()
    last: dict[tuple[str, str], dict[str, Any] | None] = {}
    for name in COLLECTIONS:
        expected = [made for made in history if made.collection == name]
        found = list(stored(server, name))
        assert [
            Made(name, one.op, key, one.before, one.after) for _, key, one in found
        ] == [told(made) for made in expected]
        ids.update(one for one, _, _ in found)
        for _, key, one in found:
            assert (one.key, one.source["collection"]) == (key, name)
            last[name, key] = one.after
    assert len(ids) == len(history)
    assert {place: one for place, one in last.items() if one is not None} == {
        (name, key): told(Made(name, "insert", key, None, document)).after
        for (name, key), document in state.items()
    }
    assert capture.stop() == 0
    assert capture.status["events"] == len(history)
    assert server.stop() == 0


def test_every_change_of_postgresql_is_told_once_whatever_is_killed(
    tmp_path: Path,
) -> None:
    with own_postgres() as postgres:
        writer = PostgresWriter(postgres.url, SEED, COUNT, BULK)
        writer.prepare()
        with captured(tmp_path, postgres.url) as (server, capture):
            try:
                disturb(server, capture, writer, lambda: restart_postgres(postgres))
            finally:
                writer.stopping.set()
            with psycopg.connect(postgres.url) as connection:
                history, state = writer.history(connection), writer.state(connection)

            assert writer.failures >= 1
            check(server, capture, history, state, told=by_postgres)


def test_every_change_of_mongodb_is_told_once_whatever_is_killed(
    tmp_path: Path,
) -> None:
    with own_mongod() as mongod:
        writer = MongoWriter(mongod.url, SEED, COUNT, BULK)
        writer.prepare()
        with captured(tmp_path, mongod.url) as (server, capture):
            try:
                disturb(server, capture, writer, lambda: restart_mongod(mongod))
            finally:
                writer.stopping.set()
            with writer.connected() as client:
                history, state = writer.history(client), writer.state(client)

            assert writer.failures >= 1
            check(server, capture, history, state, told=by_mongodb)


def by_postgres(made: Made) -> Made:
    """A row; what was before only of the table that has REPLICA IDENTITY FULL."""

    def row(document: dict[str, Any] | None) -> dict[str, Any] | None:
        return document and {"id": made.key, "doc": document}

    before = row(made.before) if made.collection == "orders" else None
    return made._replace(before=before, after=row(made.after))


def by_mongodb(made: Made) -> Made:
    def kept(document: dict[str, Any] | None) -> dict[str, Any] | None:
        return document and {"_id": made.key, **document}

    return made._replace(before=kept(made.before), after=kept(made.after))


def restart_postgres(postgres: OwnPostgres) -> None:
    pid = postgres.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    postgres.wait(PATIENCE_S)
    postgres.start()


def restart_mongod(mongod: Mongod) -> None:
    mongod.kill()
    mongod.start()
