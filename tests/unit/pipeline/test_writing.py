"""Bulk writes as a task does them, with a store that is a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from penstock.pipeline.writing import Task, forget, opened


@dataclass(eq=False)
class Lists:
    """Opens itself; knows what was written, and how often it was opened and closed."""

    written: list[tuple[str, list[str]]] = field(default_factory=list)
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
        self.written.append((collection, rows["key"].to_pylist()))
        return int(rows.num_rows)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def store() -> Iterator[Lists]:
    store = Lists()
    yield store
    forget(store)


def test_every_collection_of_a_batch_is_a_bulk(store: Lists) -> None:
    rows = [("users", "a", 3), ("tweets", "1", 1), ("users", "b", 1)]

    bulks = told(store, rows, [("tweets", "2", 4)])

    assert store.written == [
        ("tweets", ["1"]),
        ("users", ["a", "b"]),
        ("tweets", ["2"]),
    ]
    assert [
        (bulk["collection"], bulk["documents"], bulk["events"]) for bulk in bulks
    ] == [
        ("tweets", 1, 1),
        ("users", 2, 4),
        ("tweets", 1, 4),
    ]
    assert all(bulk["ms"] >= 0 for bulk in bulks)


def test_nothing_is_written_of_nothing(store: Lists) -> None:
    assert told(store, []) == []
    assert store.opened == 0


def test_a_worker_opens_its_store_once(store: Lists) -> None:
    told(store, [("tweets", "1", 1)])
    told(store, [("tweets", "2", 1)])

    assert (store.opened, store.closed) == (1, 0)


def test_a_store_that_failed_is_opened_anew(store: Lists) -> None:
    store.fails = True
    with pytest.raises(OSError, match="no"):
        told(store, [("tweets", "1", 1)])
    store.fails = False

    told(store, [("tweets", "1", 1)])

    assert (store.opened, store.closed) == (2, 1)
    assert opened(store) is store


def told(store: Lists, *batches: list[tuple[str, str, int]]) -> list[dict]:
    """What a task says of batches of collection, key, and how many events."""
    schema = pa.schema(
        [
            *(("collection", pa.string()), ("key", pa.string())),
            *(("version", pa.int64()), ("doc", pa.string()), ("events", pa.int64())),
        ]
    )
    found = []
    for batch in batches:
        rows = [
            dict(zip(schema.names, (name, key, 1, "{}", events), strict=True))
            for name, key, events in batch
        ]
        told = Task(store).write(pa.Table.from_pylist(rows, schema)).to_pylist()
        assert len(told) == len(rows)
        found += [bulk for bulks in told if bulks is not None for bulk in bulks]
    return found
