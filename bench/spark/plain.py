"""Data sources to compare with: one that yields tuples, and one that reads nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from penstock.log import Batch, Reader

TUPLES, CLOCK, STAMPS = "tuples", "clock", "stamps"
READ_BYTES = 4 << 20
TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "timestampType": "int",
}


class TupleSource(DataSource):
    """The same topic read from the same files, a tuple for every event."""

    @classmethod
    def name(cls) -> str:
        return TUPLES

    def schema(self) -> str:
        return ", ".join(f"{name} {TYPES[name]}" for name in self._columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(
            self.options["path"],
            self.options["topic"],
            self._columns,
            int(self.options["events"]),
        )

    @property
    def _columns(self) -> list[str]:
        return self.options["columns"].split(",")


class Part(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class TupleReader(DataSourceReader):
    def __init__(self, path: str, topic: str, columns: list[str], end: int) -> None:
        self._path, self._topic, self._columns = path, topic, columns
        self._end = end

    def partitions(self) -> list[InputPartition]:
        half = self._end // 2
        return [Part(0, half), Part(half, self._end)]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        assert isinstance(partition, Part)
        offset = partition.start
        with Reader.open(self._path) as reader:
            while offset < partition.end:
                for batch in reader.read(self._topic, offset, READ_BYTES):
                    yield from self._rows(batch.since(offset).before(partition.end))
                    offset = batch.end_offset

    def _rows(self, batch: Batch) -> Iterator[tuple[object, ...]]:
        """Lists by the log, one tuple an event by Python."""
        if self._columns == ["value"]:
            for payload in batch.payloads():
                yield (payload,)
            return
        offsets = count(batch.base_offset)
        columns = (batch.keys(), batch.payloads(), offsets, batch.timestamps())
        for key, payload, offset, time_ms in zip(*columns, strict=False):
            moment = datetime.fromtimestamp(time_ms / 1000, UTC)
            yield key, payload, self._topic, 0, offset, moment, 0


class ClockSource(DataSource):
    """A stream that is made up: so many rows a second, each the moment it is due."""

    @classmethod
    def name(cls) -> str:
        return CLOCK

    def schema(self) -> str:
        return "value binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return ClockReader(float(self.options["since"]), int(self.options["rate"]))


class ClockReader(DataSourceStreamReader):
    def __init__(self, since: float, rate: int) -> None:
        self._since, self._rate = since, rate

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"at": max(start["at"], int((time.time() - self._since) * self._rate))}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def partitions(
        self, start: dict[str, int], end: dict[str, int]
    ) -> list[InputPartition]:
        return [Part(start["at"], end["at"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Part)
        rows = range(partition.start, partition.end)
        # The first row is due a step after the beginning.
        due = [repr(self._since + (row + 1) / self._rate).encode() for row in rows]
        column = pa.array(due, pa.binary())
        yield pa.RecordBatch.from_arrays([column], names=["value"])


class StampSink(DataSource):
    """Writes down when each value was committed, and keeps nothing else."""

    @classmethod
    def name(cls) -> str:
        return STAMPS

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamArrowWriter:
        return StampWriter(self.options["file"])


class Values(WriterCommitMessage):
    def __init__(self, values: list[bytes]) -> None:
        self.values = values


class StampWriter(DataSourceStreamArrowWriter):
    def __init__(self, file: str) -> None:
        self._file = file

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Values:
        values: list[bytes] = []
        for batch in iterator:
            values += batch.column(0).to_pylist()
        return Values(values)

    def commit(self, messages: list[Any], batchId: int) -> None:
        now_s = time.time()
        with Path(self._file).open("a") as file:
            for message in messages:
                for value in message.values:
                    file.write(f"{value.decode()} {now_s!r}\n")

    def abort(self, messages: list[Any], batchId: int) -> None:
        pass
