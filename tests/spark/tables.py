"""What the tests of the source share: events, and rows however they were read."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from penstock.client import connect
from penstock.log import Batch, Reader
from tests.serving import Serving

Table = list[dict[str, Any]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def servers(broker: Serving) -> str:
    return f"127.0.0.1:{broker.ports['native']}"


def free_port() -> str:
    """A port for a server that has to come back where it was."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return str(sock.getsockname()[1])


def publish(broker: Serving, topic: str, count: int, start: int = 0) -> None:
    """Events that say their number; some have keys, headers, priorities, ids."""
    numbers = range(start, start + count)
    with connect(broker.data, name="tests") as client:
        for part in (numbers[: count // 2], numbers[count // 2 :]):
            client.publish(
                topic,
                [b'{"n": %d}' % number for number in part],
                keys=[None if n % 3 == 0 else b"key %d" % (n % 5) for n in part],
                ids=[None if n % 2 else f"{topic}/{n}" for n in part],
                priorities=[n % 7 for n in part],
                headers=[{} if n % 4 else {"n": str(n), "ä": "ö"} for n in part],
                parents=[None if n % 5 else f"parent {n}" for n in part],
            )


def plainly(data: Path, *topics: str) -> Table:
    """All rows as a reader of the log sees them, event by event."""
    rows = []
    with Reader.open(data) as reader:
        for topic in topics:
            rows += [row for batch in _batches(reader, topic) for row in _rows(batch)]
    return rows


def _batches(reader: Reader, topic: str) -> Iterable[Batch]:
    offset = reader.topic(topic).start_offset
    while batches := reader.read(topic, offset):
        yield from batches
        offset = batches[-1].end_offset


def _rows(batch: Batch) -> Iterable[dict[str, Any]]:
    for event in batch.events():
        yield {
            "key": event.key,
            "value": event.payload,
            "topic": event.topic,
            "partition": 0,
            "offset": event.offset,
            "timestamp": _EPOCH + timedelta(milliseconds=event.timestamp_ms),
            "timestampType": 0,
            "headers": [
                {"key": name, "value": text.encode()}
                for name, text in event.headers.items()
            ],
            "id": event.id,
            "priority": event.priority,
            "parent": event.parent,
            "producer": event.producer,
            "expires": _time(event.expires_ms),
            "not_before": _time(event.not_before_ms),
        }


def _time(time_ms: int | None) -> datetime | None:
    return None if time_ms is None else _EPOCH + timedelta(milliseconds=time_ms)


def table(frame: DataFrame) -> Table:
    """The rows of a DataFrame by topic and offset, in types that can be compared."""
    rows = [_plain(row.asDict(recursive=True)) for row in frame.collect()]
    return sorted(rows, key=lambda row: (row.get("topic", ""), row.get("offset", 0)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, datetime):  # in this machine's time, as Spark gives it
        return value.astimezone(UTC)
    assert not isinstance(value, Row)
    return value


def read(spark: SparkSession, place: dict[str, str], **options: Any) -> DataFrame:
    return spark.read.format("penstock").options(**place, **options).load()
