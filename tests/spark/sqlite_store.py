"""A store in one file, for tests of what stands in front of a store."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

TRIES = "tries"
WAIT_S = 120.0

_UPSERT = """\
INSERT INTO documents VALUES (?, ?, ?, ?, 1) ON CONFLICT (collection, key) DO UPDATE
SET version = excluded.version, doc = excluded.doc, writes = writes + 1
WHERE excluded.version > version
"""


@dataclass(frozen=True)
class SqliteStore:
    """Opens the file, wherever it is called."""

    path: str

    def __call__(self) -> SqliteWriter:
        return SqliteWriter(self.path)

    def read(self, collection: str) -> dict[str, tuple[int, dict[str, Any]]]:
        """Version and document, by key."""
        writer = self()
        rows = writer.ask("SELECT key, version, doc FROM documents", collection)
        return {key: (version, json.loads(doc)) for key, version, doc in rows}

    def writes(self, collection: str) -> dict[str, int]:
        """How often each document was changed, by key."""
        writer = self()
        return dict(writer.ask("SELECT key, writes FROM documents", collection))


@dataclass(frozen=True)
class FailingStore(SqliteStore):
    """Fails after it has written, in the first two tries of every task."""

    def __call__(self) -> SqliteWriter:
        return FailingWriter(self.path)

    def failures(self) -> set[tuple[str, int]]:
        """Collections and tries."""
        return {
            (key.partition(" ")[0], at) for key, (at, _) in self.read(TRIES).items()
        }


@dataclass(frozen=True)
class SlowStore(SqliteStore):
    """Has the first try of the first task wait until another one has written, too."""

    def __call__(self) -> SqliteWriter:
        return SlowWriter(self.path)

    def tries(self) -> list[int]:
        """Of the first task, those that have written."""
        return sorted(at for at, _ in self.read(TRIES).values())


class SqliteWriter:
    def __init__(self, path: str) -> None:
        self._file = sqlite3.connect(path, timeout=60)
        with self._file:
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS documents (collection, key,"
                " version INTEGER, doc, writes INTEGER, PRIMARY KEY (collection, key))"
            )

    def upsert(self, collection: str, rows: pa.Table) -> int:
        with self._file:
            before = self._file.total_changes
            self._file.executemany(
                _UPSERT,
                [
                    (collection, row["key"], row["version"], row["doc"])
                    for row in rows.to_pylist()
                ],
            )
        return self._file.total_changes - before

    def close(self) -> None:
        self._file.close()

    def ask(self, select: str, collection: str) -> list[tuple[Any, ...]]:
        return self._file.execute(
            f"{select} WHERE collection = ?", (collection,)
        ).fetchall()


class TryingWriter(SqliteWriter):
    """Notes which tries of tasks have written."""

    def note(self, collection: str) -> None:
        task = task_of()
        row = {
            "key": [f"{collection} {task.taskAttemptId()}"],
            "version": [task.attemptNumber()],
            "doc": [b"{}"],
        }
        super().upsert(TRIES, pa.table(row))


class FailingWriter(TryingWriter):
    def upsert(self, collection: str, rows: pa.Table) -> int:
        done = super().upsert(collection, rows)
        fails = {"tweets": 0, "users": 1, "users_engagements": 0}
        if task_of().attemptNumber() == fails[collection]:
            self.note(collection)
            raise OSError(f"failed after {collection} were written")
        return done


class SlowWriter(TryingWriter):
    def upsert(self, collection: str, rows: pa.Table) -> int:
        done = super().upsert(collection, rows)
        task = task_of()
        if collection == "users" and task.partitionId() == 0:
            self.note(collection)
            deadline_s = time.monotonic() + WAIT_S
            while task.attemptNumber() == 0 and time.monotonic() < deadline_s:
                if len(self.ask("SELECT key FROM documents", TRIES)) > 1:
                    break
                time.sleep(0.05)
        return done


def task_of() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "it is one of Spark"
    return task
