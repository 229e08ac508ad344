"""The columns of a topic, made from frames, of those that the caller wants.

The arrays of a frame are its own buffers (log/arrow.py). Small frames are put together
into larger batches, and what is wanted in another type is converted then, a column at a
time: nothing here runs once for each event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.log import Batch, record_batch
from penstock.table.naming import CORRUPT
from penstock.table.payloads import PayloadDecoder

# Rows of one record batch and bytes of their frames: past either it is handed on.
# Measured: what is larger leaves the processor's caches and costs half as much again,
# what is smaller costs Spark more for every batch.
CHUNK_ROWS = 1 << 13
CHUNK_BYTES = 2 << 20

# Those that are not kept for each event: the topic, and what is 0 everywhere.
_CONSTANT = frozenset({"topic", "partition", "timestampType"})


@dataclass(frozen=True)
class QueryColumns:
    """The columns of a query: of the event, of its payload, or ``_corrupt``.

    ``own`` says of each column which of NAMES it is; None: the payload's.
    """

    schema: pa.Schema
    own: tuple[str | None, ...]
    typed: pa.Schema | None = None

    @cached_property
    def kept(self) -> list[str]:
        """Columns of the log that are needed."""
        names = {name for name in self.own if name is not None} - _CONSTANT - {CORRUPT}
        if self.decoded:
            names.add("value")
        kept = ["payload" if name == "value" else name for name in sorted(names)]
        return kept or ["offset"]

    @cached_property
    def decoded(self) -> list[pa.Field]:
        """Fields of the payload to look at: all, to know which payloads fit."""
        if self.typed is not None and CORRUPT in self.own:
            return list(self.typed)
        pairs = zip(self.schema, self.own, strict=True)
        return [field for field, own in pairs if own is None]

    def name_of(self, own: str) -> str | None:
        """What a column of NAMES is called here; None: it is not wanted."""
        pairs = zip(self.schema, self.own, strict=True)
        return next((field.name for field, name in pairs if name == own), None)


class Builder:
    """Frames of one topic to record batches; made where they are read.

    ``misfits`` counts payloads whose fields were wanted and that do not have them.
    """

    def __init__(
        self,
        layout: QueryColumns,
        topic: str,
        *,
        chunk_rows: int | None = None,
        chunk_bytes: int | None = None,
    ) -> None:
        self.misfits = 0
        self._chunk_rows = chunk_rows or CHUNK_ROWS
        self._chunk_bytes = chunk_bytes or CHUNK_BYTES
        self._layout = layout
        self._topic = pa.scalar(topic, pa.string())
        self._schema = layout.schema
        self._decoder = PayloadDecoder(layout.decoded) if layout.decoded else None
        self._repeated: dict[str, pa.Array] = {}

    def record_batches(self, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        chunk: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            chunk.append(record_batch(batch, self._layout.kept))
            rows += len(batch)
            # A part of a frame costs as much of it as it has of its events.
            size += batch.header.length * len(batch) // batch.header.events
            del batch  # or the block it was read into outlives the next read
            if rows >= self._chunk_rows or size >= self._chunk_bytes:
                yield self._built(chunk)
                chunk, rows, size = [], 0, 0
        if chunk:
            yield self._built(chunk)

    def _built(self, chunk: list[pa.RecordBatch]) -> pa.RecordBatch:
        whole = chunk[0] if len(chunk) == 1 else pa.concat_batches(chunk)
        count = whole.num_rows
        decoded, corrupt = self._decoded(whole)
        arrays = []
        for own, field in zip(self._layout.own, self._schema, strict=True):
            if own is None:
                arrays.append(decoded[field.name])
            elif own == CORRUPT:
                arrays.append(_as(corrupt, field.type))
            elif own in _CONSTANT:
                arrays.append(self._constant(own, field.type, count))
            else:
                column = whole.column("payload" if own == "value" else own)
                arrays.append(_as(column, field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, own: str, kind: pa.DataType, count: int) -> pa.Array:
        """A column of one value: a part of one that was made before, if it can be."""
        found = self._repeated.get(own)
        if found is None or len(found) < count:
            value = self._topic if own == "topic" else pa.scalar(0, kind)
            most = max(count, self._chunk_rows)
            found = self._repeated[own] = pa.repeat(value, most)
        return found.slice(0, count)

    def _decoded(
        self, whole: pa.RecordBatch
    ) -> tuple[dict[str, pa.Array], pa.Array | None]:
        """The fields of the payloads, and those payloads that have none."""
        if self._decoder is None:
            return {}, None
        payloads = whole.column("payload")
        arrays, bad = self._decoder.decode(payloads)
        names = [field.name for field in self._layout.decoded]
        columns = dict(zip(names, arrays, strict=True))
        if bad is None:
            return columns, pa.nulls(len(payloads), pa.binary())
        self.misfits += bad.true_count
        return columns, pa.compute.if_else(bad, payloads, pa.scalar(None, pa.binary()))


def _as(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in the type that is wanted."""
    if column.type == kind:
        return column
    if pa.types.is_map(column.type):
        return _headers(column, kind)
    if pa.types.is_string(kind) and pa.types.is_binary(column.type):
        return _text(column)
    return column.cast(kind)


def _text(column: pa.Array) -> pa.Array:
    """Bytes as text; those that are none are shown as such (U+FFFD)."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = (
            None if one is None else one.decode(errors="replace")
            for one in column.to_pylist()
        )
        return pa.array(texts, pa.string())


def _headers(maps: pa.Array, wanted: pa.DataType) -> pa.Array:
    element = wanted.value_type
    values = maps.items.cast(element.field("value").type)
    pairs = pa.StructArray.from_arrays([maps.keys, values], fields=list(element))
    return pa.ListArray.from_arrays(maps.offsets, pairs, type=wanted)
