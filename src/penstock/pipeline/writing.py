"""Bulk writes of documents, by the tasks of Spark, into the store.

A worker of Spark opens the store once and keeps it: it is asked to write again with
the next batch. A store that failed is closed, and opened again for the next task.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, inline
from pyspark.sql.pandas.functions import arrow_udf

COLUMNS = ("collection", "key", "version", "doc", "events")
# What a task says of its bulks.
BULKS = (
    "ARRAY<STRUCT<collection: STRING, ms: DOUBLE, documents: BIGINT, events: BIGINT>>"
)


class Writer(Protocol):
    """What is asked of a store here."""

    def upsert(self, collection: str, rows: pa.Table) -> int:
        """Write ``key``, ``version`` and ``doc``, but over no newer or equal one."""

    def close(self) -> None: ...


class Opener(Hashable, Protocol):
    """Opens the store in a task; travels there, and equals itself."""

    def __call__(self) -> Writer: ...


@dataclass(frozen=True, slots=True)
class Bulk:
    """One write of many documents."""

    collection: str
    ms: float
    documents: int
    events: int
    """The tweets that they stand for."""


def write(changes: DataFrame, opener: Opener) -> list[Bulk]:
    """Write what ``changes`` gives; what each bulk took. One job of Spark.

    As a function of Arrow arrays, because ``mapInArrow`` would want pandas. Spark is
    told that it does not always say the same, and so calls it once for every row.
    """
    task = Task(opener)

    def told(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for columns in batches:
            yield task.write(pa.table(list(columns), list(COLUMNS)))

    bulks = arrow_udf(told, BULKS)  # type: ignore[call-overload]
    done = changes.select(bulks.asNondeterministic()(*COLUMNS).alias("bulks"))
    rows = done.where(col("bulks").isNotNull()).select(inline("bulks")).collect()
    return [Bulk(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Task:
    """What a task does: a bulk for each collection in each of its Arrow batches."""

    opener: Opener

    def write(self, table: pa.Table) -> pa.Array:
        """What the bulks took, told with the first row; there is one for every row."""
        bulks = [
            self._bulk(name, table.filter(pc.equal(table["collection"], name)))
            for name in sorted(table["collection"].unique().to_pylist())
        ]
        told = [bulks, *([None] * (table.num_rows - 1))] if bulks else []
        return pa.array(told, _BULKS)

    def _bulk(self, collection: str, table: pa.Table) -> dict[str, object]:
        writer = opened(self.opener)
        began_s = time.perf_counter()
        try:
            writer.upsert(collection, table.select(["key", "version", "doc"]))
        except BaseException:
            forget(self.opener)
            raise
        return {
            "collection": collection,
            "ms": (time.perf_counter() - began_s) * 1000,
            "documents": table.num_rows,
            "events": pc.sum(table["events"]).as_py(),
        }


_BULKS = pa.list_(
    pa.struct(
        [
            ("collection", pa.string()),
            ("ms", pa.float64()),
            ("documents", pa.int64()),
            ("events", pa.int64()),
        ]
    )
)
# Of this process.
_open: dict[Opener, Writer] = {}


def opened(opener: Opener) -> Writer:
    """The store that this process has open, or opens now."""
    if opener not in _open:
        _open[opener] = opener()
    return _open[opener]


def forget(opener: Opener) -> None:
    """Close it, if it is open."""
    writer = _open.pop(opener, None)
    if writer is not None:
        writer.close()
