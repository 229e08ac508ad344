"""A store that is a list."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(eq=False)
class Lists:
    """Opens itself; knows what was written, and how often it was opened and closed."""

    written: list[tuple[str, dict[str, tuple[int, Any]]]] = field(default_factory=list)
    opened: int = 0
    closed: int = 0
    fails: bool = False

    def __call__(self) -> Lists:
        self.opened += 1
        return self

    def upsert(self, collection: str, rows: pa.Table) -> int:
        if self.fails:
            raise OSError("no")
        assert rows.column_names == ["key", "version", "doc"]
        documents = {
            row["key"]: (row["version"], json.loads(row["doc"]))
            for row in rows.to_pylist()
        }
        self.written.append((collection, documents))
        return len(documents)

    def close(self) -> None:
        self.closed += 1
