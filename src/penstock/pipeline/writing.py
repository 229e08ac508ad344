"""The store, as a worker of Spark has it: opened once, and kept for the next batch.

A store that failed is closed, and opened again for the next task.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import Protocol

import pyarrow as pa

from penstock.store.store import DocumentRow


class DocumentWriter(Protocol):
    """What is asked of a store here."""

    def upsert(self, collection: str, rows: pa.Table) -> int:
        """Write ``key``, ``version`` and ``doc``, but over no newer or equal one."""

    def close(self) -> None: ...


class Opener(Hashable, Protocol):
    """Opens the store in a task; travels there, and equals itself."""

    def __call__(self) -> DocumentWriter: ...


def write(opener: Opener, collection: str, rows: Iterable[DocumentRow]) -> float:
    """Write documents in one bulk; how many milliseconds it took."""
    keys, versions, docs = _columns(rows)
    table = pa.table(
        {
            "key": pa.array(keys, pa.string()),
            "version": pa.array(versions, pa.int64()),
            "doc": pa.array(docs, pa.binary()),
        }
    )
    writer = opened(opener)
    began_s = time.perf_counter()
    try:
        writer.upsert(collection, table)
    except BaseException:
        forget(opener)
        raise
    return (time.perf_counter() - began_s) * 1000


def _columns(rows: Iterable[DocumentRow]) -> tuple[list[str], list[int], list[bytes]]:
    found = list(rows)
    return (
        [one[0] for one in found],
        [one[1] for one in found],
        [one[2] for one in found],
    )


# Of this process.
_open: dict[Opener, DocumentWriter] = {}


def opened(opener: Opener) -> DocumentWriter:
    """The store that this process has open, or opens now."""
    if opener not in _open:
        _open[opener] = opener()
    return _open[opener]


def forget(opener: Opener) -> None:
    """Close it, if it is open."""
    writer = _open.pop(opener, None)
    if writer is not None:
        writer.close()
