"""Servers of both kinds for the contract of stores, the same to a test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

from penstock.store.store import DocumentRow, Store


class Server(Protocol):
    """What a test that kills does with a server of its own."""

    @property
    def url(self) -> str: ...
    def start(self) -> object: ...
    def stop(self) -> None: ...


def row(key: str, version: int, **fields: Any) -> DocumentRow:
    return key, version, json.dumps(fields, ensure_ascii=False).encode()


def kept(store: Store, collection: str) -> dict[str, tuple[int, dict[str, Any]]]:
    """All that is there, by key."""
    return {key: (version, doc) for key, version, doc in store.read(collection)}


def rows(count: int, *, version: int, size: int = 200) -> Iterator[DocumentRow]:
    for number in range(count):
        yield row(f"{number:08}", version, number=number, of=version, x="x" * size)
