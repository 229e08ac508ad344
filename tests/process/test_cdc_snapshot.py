"""A snapshot that is killed while somebody writes: rows and changes fit together.

Whoever believes the events, one after the other, has in the end what the database has,
and meets none that makes no sense: no update of what is not there, nothing told twice.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pymongo import MongoClient

from penstock.client import Client, connect
from tests.effort import effort
from tests.process.narrow_link import NarrowLink
from tests.process.programs import Program
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

NAMES = ("orders", "items")
ROWS = effort(4_000, 12_000)
# What a capture can tell before it is killed: less than all rows together. One life has
# room for a whole batch of 5 000 rows, the next breaks off within one.
LIVES_BYTES = (1_500_000, 200_000) * effort(1, 2)
SEED = 5
# Between two changes: enough of them, and time for others.
PAUSE_S = 0.002
# A key that nobody else has: what is told behind it is nothing.
LAST = "last"
PATIENCE_S = 120.0
State = dict[tuple[str, str], Any]


class Writer(threading.Thread):
    """Changes documents at random until it is told to stop."""

    def __init__(self, change: Callable[[random.Random], None]) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self.made = 0
        self._change = change

    def run(self) -> None:
        chance = random.Random(SEED)
        while not self.stopping.wait(PAUSE_S):
            self._change(chance)
            self.made += 1

    def __enter__(self) -> Writer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.join(PATIENCE_S)


def test_rows_of_postgresql_and_their_changes_fit_together(
    postgres_database: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        for name in NAMES:
            connection.execute(f"CREATE TABLE {name} (id text PRIMARY KEY, n int)")
            connection.execute(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
            connection.execute(
                f"INSERT INTO {name} SELECT 'k' || n, 0 FROM generate_series(1, %s) n",
                [ROWS],
            )

        def change(chance: random.Random) -> None:
            name, key = chance.choice(NAMES), f"k{chance.randrange(2 * ROWS)}"
            if chance.random() < 0.3:
                connection.execute(f"DELETE FROM {name} WHERE id = %s", [key])
            else:
                connection.execute(
                    f"INSERT INTO {name} VALUES (%s, 1) "
                    f"ON CONFLICT (id) DO UPDATE SET n = {name}.n + 1",
                    [key],
                )

        with captured(tmp_path, postgres_database) as (broker, capture, link):
            with Writer(change) as writer:
                kill_often(broker, capture, link)
            for name in NAMES:
                connection.execute(f"INSERT INTO {name} VALUES (%s, 0)", [LAST])
            state: State = {
                (name, key): {"id": key, "n": n}
                for name in NAMES
                for key, n in connection.execute(f"SELECT id, n FROM {name}")
            }
            check(broker, capture, state)

    assert writer.made > 0


def test_documents_of_mongodb_and_their_changes_fit_together(
    mongodb_database: str, tmp_path: Path
) -> None:
    images: Any = {"changeStreamPreAndPostImages": {"enabled": True}}
    with MongoClient[Any](mongodb_database) as client:
        database = client.get_default_database()
        for name in NAMES:
            database.create_collection(name, **images)
            database[name].insert_many(
                [{"_id": f"k{n}", "n": 0} for n in range(1, ROWS + 1)]
            )

        def change(chance: random.Random) -> None:
            kept, key = database[chance.choice(NAMES)], f"k{chance.randrange(2 * ROWS)}"
            if chance.random() < 0.3:
                kept.delete_one({"_id": key})
                return
            kept.update_one({"_id": key}, {"$inc": {"n": 1}}, upsert=True)

        with captured(tmp_path, mongodb_database) as (broker, capture, link):
            with Writer(change) as writer:
                kill_often(broker, capture, link)
            for name in NAMES:
                database[name].insert_one({"_id": LAST, "n": 0})
            state: State = {
                (name, one["_id"]): one
                for name in NAMES
                for one in database[name].find()
            }
            check(broker, capture, state)

    assert writer.made > 0


@contextmanager
def captured(
    directory: Path, url: str
) -> Iterator[tuple[Serving, Program, NarrowLink]]:
    with (
        serving(directory, "--no-line", "--no-json", "--no-maze") as broker,
        NarrowLink(("127.0.0.1", broker.ports["native"])) as link,
    ):
        capture = Program(
            directory,
            *("cdc", "cdc", "run", "--store", url, "--server", link.address),
            *("--collections", ",".join(NAMES), "--snapshot"),
        )
        with capture:
            yield broker, capture, link


def kill_often(broker: Serving, capture: Program, link: NarrowLink) -> None:
    """While the snapshot is under way; the last one gets it done."""
    for life_bytes in LIVES_BYTES:
        link.allow(life_bytes)
        capture.begin()
        link.wait_until_used_up(PATIENCE_S)
        capture.kill()
        link.cut()
    with connect(broker.data) as client:
        assert 0 < sum(ends(client).values()) < 2 * ROWS, "not killed in the middle"
    link.allow(sys.maxsize)
    capture.start()
    until(lambda: capture.status.get("snapshot") is False, capture)


def ends(client: Client) -> dict[str, int]:
    """Events of the topics that there are."""
    found: Any = client.ask("topics")
    topics = found["topics"]
    return {one["name"]: one["end_offset"] for one in topics if one["name"] in NAMES}


def check(broker: Serving, capture: Program, state: State) -> None:
    """Once the last change is told, events come to the state, and make sense."""
    with connect(broker.data) as client:
        until(lambda: last_keys(client) == [LAST.encode()] * len(NAMES), capture)
    assert state_of(broker) == state
    assert capture.stop() == 0


def last_keys(client: Client) -> list[bytes | None]:
    return [
        event.key
        for name, end in ends(client).items()
        for batch in client.fetch(name, end - 1, end).batches
        for event in batch.events()
        if event.offset == end - 1
    ]


def state_of(broker: Serving) -> State:
    state: State = {}
    ids: set[str] = set()
    for name in NAMES:
        for event in events(broker, name):
            change = json.loads(event.payload)
            op, key, after = change["op"], change["key"], change["after"]
            before = state.pop((name, key), None)
            if op in ("update", "delete"):
                assert change["before"] == before, (name, op, key)
            else:
                assert before is None, (name, op, key)
            if after is not None:
                state[name, key] = after
            assert event.id not in ids
            ids.add(event.id)
    return state


def events(broker: Serving, topic: str) -> Iterator[Any]:
    with connect(broker.data) as client:
        for part in client.fetch_all(topic, 0, 1 << 40):
            for batch in part.batches:
                yield from batch.events()


def until(done: Callable[[], bool], capture: Program) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline_s, capture.log.read_text()
        time.sleep(0.03)
