"""Somebody who changes documents in a database, and writes down there what he did.

What was made is in the same transaction as the changes: whatever is killed meanwhile,
the collection ``made`` says what has happened, in the order it was committed.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple, cast

from psycopg import Connection, OperationalError, connect
from pymongo import MongoClient, WriteConcern
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError

COLLECTIONS = ("orders", "items")
KEYS = 300
PAUSE_S = 0.05


class Made(NamedTuple):
    """One change; documents are {"n": number, "text": text}."""

    collection: str
    op: str
    key: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


State = dict[tuple[str, str], dict[str, Any]]


class Writer(threading.Thread):
    """Makes ``count`` changes, or a few more, going on after every error.

    In the middle one transaction of ``bulk`` new documents comes on top. However fast
    it is, it goes on, slowly then, until it was ``disturbed`` as it should be.
    """

    def __init__(self, seed: int, count: int, bulk: int) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self.disturbed = threading.Event()
        self.made = 0
        self.failures = 0
        self._random = random.Random(seed)
        self._total = count + bulk
        self._middle = count // 2
        self._bulk = bulk
        self._number = 0

    def run(self) -> None:
        while not self.done():
            try:
                self.work()
            except (OperationalError, PyMongoError):
                self.failures += 1
                self.stopping.wait(PAUSE_S)

    def work(self) -> None:
        """Connect, look what is there, and go on."""
        raise NotImplementedError

    def done(self) -> bool:
        """Whether there is nothing more to do, asked after each transaction."""
        if self.made < self._total:
            return self.stopping.is_set()
        return self.disturbed.wait(PAUSE_S) or self.stopping.is_set()

    def go_on(self, state: State, made: int) -> list[Made]:
        """What to do next, from what is there."""
        self.made = made
        if made >= self._middle and ("orders", "b0") not in state:
            return [self._insert(f"b{n}") for n in range(self._bulk)]
        size = self._random.choice([1, 1, 2, 5, 20])
        pending = dict(state)
        return [self._change(pending) for _ in range(size)]

    def _insert(self, key: str) -> Made:
        return Made("orders", "insert", key, None, self._document())

    def _change(self, state: State) -> Made:
        place = (self._random.choice(COLLECTIONS), str(self._random.randrange(KEYS)))
        before = state.get(place)
        if before is None:
            after = state[place] = self._document()
            return Made(place[0], "insert", place[1], None, after)
        if self._random.random() < 0.3:
            del state[place]
            return Made(place[0], "delete", place[1], before, None)
        after = state[place] = self._document()
        return Made(place[0], "update", place[1], before, after)

    def _document(self) -> dict[str, Any]:
        self._number += 1
        return {"n": self._number, "text": self._random.choice(["", "ü", "x" * 300])}


class PostgresWriter(Writer):
    """Rows of (id, doc); only ``orders`` tells what was before."""

    def __init__(self, url: str, seed: int, count: int, bulk: int) -> None:
        super().__init__(seed, count, bulk)
        self._url = url

    def prepare(self) -> None:
        with connect(self._url) as connection:
            for name in COLLECTIONS:
                connection.execute(
                    f"CREATE TABLE {name} (id text PRIMARY KEY, doc jsonb)"
                )
            connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
            connection.execute(
                "CREATE TABLE made (n bigserial PRIMARY KEY, change json)"
            )

    def work(self) -> None:
        with connect(self._url) as connection:
            state = self.state(connection)
            changes = self.go_on(state, len(self.history(connection)))
            while True:
                _apply(connection, changes)
                connection.commit()
                self.made += len(changes)
                for change in changes:
                    _note(state, change)
                if self.done():
                    return
                changes = self.go_on(state, self.made)

    def state(self, connection: Connection[Any]) -> State:
        return {
            (name, key): document
            for name in COLLECTIONS
            for key, document in connection.execute(f"SELECT id, doc FROM {name}")
        }

    def history(self, connection: Connection[Any]) -> list[Made]:
        rows = connection.execute("SELECT change FROM made ORDER BY n")
        return [Made(*change) for (change,) in rows]


class MongoWriter(Writer):
    """Documents of {_id, n, text} in collections that keep images."""

    def __init__(self, url: str, seed: int, count: int, bulk: int) -> None:
        super().__init__(seed, count, bulk)
        self._url = url

    def prepare(self) -> None:
        images: Any = {"changeStreamPreAndPostImages": {"enabled": True}}
        with self.connected() as client:
            for name in COLLECTIONS:
                client.get_default_database().create_collection(name, **images)
            client.get_default_database().create_collection("made")

    def connected(self) -> MongoClient[Any]:
        return MongoClient(self._url, serverSelectionTimeoutMS=2000)

    def work(self) -> None:
        with self.connected() as client, client.start_session() as session:
            state = self.state(client)
            changes = self.go_on(state, len(self.history(client)))
            while True:
                with session.start_transaction(write_concern=WriteConcern("majority")):
                    self._write(session, changes)
                self.made += len(changes)
                for change in changes:
                    _note(state, change)
                if self.done():
                    return
                changes = self.go_on(state, self.made)

    def _write(self, session: ClientSession, changes: list[Made]) -> None:
        database = session.client.get_default_database()
        for (name, op), some in _alike(changes):
            kept = database[name]
            if op == "insert":
                new = [{"_id": one.key, **(one.after or {})} for one in some]
                kept.insert_many(new, session=session)
                continue
            for one in some:
                if op == "update":
                    kept.update_one(
                        {"_id": one.key}, {"$set": one.after}, session=session
                    )
                else:
                    kept.delete_one({"_id": one.key}, session=session)
        made = [
            {"_id": self.made + n, "change": change} for n, change in enumerate(changes)
        ]
        database.made.insert_many(made, session=session)

    def state(self, client: MongoClient[Any]) -> State:
        database = client.get_default_database()
        return {
            (name, document.pop("_id")): document
            for name in COLLECTIONS
            for document in database[name].find()
        }

    def history(self, client: MongoClient[Any]) -> list[Made]:
        found = client.get_default_database().made.find().sort("_id", 1)
        return [Made(*one["change"]) for one in found]


def _note(state: State, change: Made) -> None:
    if change.after is None:
        state.pop((change.collection, change.key), None)
    else:
        state[change.collection, change.key] = change.after


def _alike(changes: list[Made]) -> Iterator[tuple[tuple[str, str], list[Made]]]:
    """Neighbours of one collection and operation together."""
    for kind, some in groupby(changes, lambda one: (one.collection, one.op)):
        yield kind, list(some)


def _apply(connection: Connection[Any], changes: list[Made]) -> None:
    cursor = connection.cursor()
    for (table, op), some in _alike(changes):
        given = [{"id": one.key, "doc": json.dumps(one.after)} for one in some]
        cursor.executemany(cast(Any, _STATEMENTS[op].format(table)), given)
    cursor.executemany(
        "INSERT INTO made (change) VALUES (%s)",
        [[json.dumps(change)] for change in changes],
    )


_STATEMENTS = {
    "insert": "INSERT INTO {} VALUES (%(id)s, %(doc)s)",
    "update": "UPDATE {} SET doc = %(doc)s WHERE id = %(id)s",
    "delete": "DELETE FROM {} WHERE id = %(id)s",
}
