"""The store of a worker: opened once, and anew after it failed."""

from __future__ import annotations

import pytest

from penstock.pipeline.writing import opened, write
from tests.unit.pipeline.stores import Lists

ROWS = [("a", 3, b"{}"), ("b", 4, b'{"x":1}')]


def test_documents_are_written_in_one_bulk(store: Lists) -> None:
    took_ms = write(store, "tweets", iter(ROWS))

    assert took_ms >= 0
    assert store.written == [("tweets", {"a": (3, {}), "b": (4, {"x": 1})})]


def test_a_worker_opens_its_store_once(store: Lists) -> None:
    write(store, "tweets", ROWS)
    write(store, "users", ROWS)

    assert (store.opened, store.closed) == (1, 0)


def test_a_store_that_failed_is_opened_anew(store: Lists) -> None:
    store.fails = True
    with pytest.raises(OSError, match="no"):
        write(store, "tweets", ROWS)
    store.fails = False

    write(store, "tweets", ROWS)

    assert (store.opened, store.closed) == (2, 1)
    assert opened(store) is store
