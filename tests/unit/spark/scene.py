"""Topics to be read as tables, and the tables that come of it, without Java."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import CaseInsensitiveDict

from penstock.log import Columns, Log
from penstock.spark.source import PenstockSource
from penstock.table.connection import BrokerAccess

# Milliseconds since 1970: 2026-01-01T00:00:00Z.
NEW_YEAR = 1_767_225_600_000


def filled(directory: Path, **topics: int) -> Path:
    """A data directory that nobody writes any more, with that many events each."""
    with Log.open(directory) as log:
        for topic, count in topics.items():
            log.create_topic(topic)
            append(log, topic, count)
    return directory


def append(log: Log, topic: str, count: int, start: int = 0) -> None:
    """Events whose payload and time say their number, every third without a key."""
    numbers = range(start, start + count)
    if not count:
        return
    log.append(
        topic,
        Columns(
            [f"{topic}-{number}".encode() for number in numbers],
            [NEW_YEAR + number for number in numbers],
            keys=[None if number % 3 == 0 else b"k" for number in numbers],
            priorities=[number % 5 for number in numbers],
            headers=[{"n": str(number)} for number in numbers],
            producer="me",
        ),
    )
    log.sync()


def source(**options: str) -> PenstockSource:
    return PenstockSource(CaseInsensitiveDict(options))


def connection(path: Path, **said: Any) -> BrokerAccess:
    return BrokerAccess(servers=(), path=str(path), **said)


def read(one: PenstockSource, schema: Any = None) -> list[dict[str, Any]]:
    """All rows of a table, partition by partition."""
    reader = one.reader(one.schema() if schema is None else schema)
    return rows([b for part in reader.partitions() for b in reader.read(part)])


def rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return pa.Table.from_batches(batches).to_pylist() if batches else []
