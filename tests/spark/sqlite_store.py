"""A store in one file, for tests of what stands in front of a store."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

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
