"""Batches as Arrow: the frame's own buffers, and no loop over events.

A frame has its columns in Arrow's layout (frame.py), so most of them become arrays by
naming their buffers: nothing is copied, and the arrays keep the bytes that were read
alive. What a frame leaves out is made up for the whole column at once: constants,
nulls, dense offsets, generated ids.

The only module of the core that knows Arrow; it needs the extra ``penstock[arrow]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Protocol

from penstock.errors import InvalidOption, MissingExtra
from penstock.files import Buffer
from penstock.log.batch import Batch, split_maps
from penstock.log.frame import Column, Encoding, FrameFlag
from penstock.model.event import FIELDS, OPTIONAL, Field
from penstock.model.ids import event_id, event_id_at

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingExtra("Arrow", error.name or "pyarrow", "arrow") from error

TEXT = pa.string()
BYTES = pa.binary()
TIMESTAMP = pa.timestamp("ms", "UTC")
HEADERS = pa.map_(TEXT, TEXT)

_TYPES = {str(one): one for one in (TEXT, BYTES, TIMESTAMP, pa.int64(), pa.uint8())}
# As Arrow writes it, it differs from version to version.
_TYPES["map<string, string>"] = HEADERS
# All but the topic, which stands in the metadata.
SCHEMA = pa.schema(
    [
        pa.field(one.name, _TYPES[one.arrow], nullable=one.nullable)
        for one in FIELDS
        if one.name != "topic"
    ]
)

# Frames are gathered to about this much for a file: readers like large chunks, and
# this bounds what writing one costs in memory.
CHUNK_BYTES = 1 << 24

_ENTRIES = pa.struct([pa.field("key", TEXT, nullable=False), pa.field("value", TEXT)])
# A generated id as text: its last 8 hexadecimal digits differ within a batch, or those
# of its time as well.
_ID_BYTES = 36
_ID_STRIDE = (_ID_BYTES,)
# Made-up columns of one length are made once: batches tend to have equal lengths.
_KEPT = 32
# Offsets made at a time.
_BLOCK = 1 << 14


def record_batch(batch: Batch, columns: Sequence[str] | None = None) -> pa.RecordBatch:
    """The events in view as a record batch of SCHEMA, or of some of its columns."""
    plan = _EVERYTHING if columns is None else _plan(tuple(columns))
    count = batch.hi - batch.lo
    arrays = _defaults(plan, count).copy()
    for slot, make in plan.always:
        arrays[slot] = make(batch, count)
    if batch.header.columns > 1:
        present = batch.columns()
        for slot, column, find in plan.optional:
            if column in present:
                arrays[slot] = find(batch, count)
    # Half the price of RecordBatch.from_arrays, which compares every type again.
    rows = pa.Array.from_buffers(plan.row, count, _NO_NULLS, 0, 0, arrays)
    return pa.RecordBatch.from_struct_array(rows)


class ByteSink(Protocol):
    """Where a file goes: standard output will do, it need not seek."""

    def write(self, data: bytes, /) -> object: ...


def write_arrow(sink: ByteSink, topic: str, batches: Iterable[Batch]) -> None:
    """Write batches as an Arrow IPC file (that is, Feather 2), uncompressed."""
    schema = _schema_of(topic)
    with pa.ipc.new_file(pa.PythonFile(_Unseekable(sink), "w"), schema) as writer:
        for chunk in _chunks(batches):
            table = pa.Table.from_batches(chunk)
            writer.write_table(table.combine_chunks().replace_schema_metadata(None))


def write_parquet(sink: ByteSink, topic: str, batches: Iterable[Batch]) -> None:
    """Write batches as a Parquet file, one row group a chunk."""
    schema = _schema_of(topic)
    with pq.ParquetWriter(_Unseekable(sink), schema, compression="zstd") as writer:
        for chunk in _chunks(batches):
            writer.write_table(pa.Table.from_batches(chunk))


class ArrowPieces:
    """Batches as an Arrow IPC stream, in pieces for the caller to send on."""

    def __init__(self, topic: str) -> None:
        self._parts: list[bytes] = []
        sink = pa.PythonFile(_Unseekable(self), "w")
        self._writer = pa.ipc.new_stream(sink, _schema_of(topic))

    def write(self, data: bytes, /) -> None:
        """Called by Arrow."""
        self._parts.append(data)

    def piece(self, batch: Batch) -> bytes:
        """The stream goes on with these events."""
        self._writer.write_batch(record_batch(batch))
        return self._taken()

    def end(self) -> bytes:
        """The end of the stream."""
        self._writer.close()
        return self._taken()

    def _taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


class _Unseekable:
    """What Arrow asks of a file; it counts positions itself."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink.write(data)
        return len(data)

    def flush(self) -> None: ...


def _schema_of(topic: str) -> pa.Schema:
    return SCHEMA.with_metadata({"penstock.topic": topic})


def _chunks(batches: Iterable[Batch]) -> Iterator[list[pa.RecordBatch]]:
    chunk: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        chunk.append(record_batch(batch))
        size += batch.header.length
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


# One function a column: the array of the events in view, or None where the frame
# leaves an optional column out.

_NO_NULLS = [None]
# Plain numbers: an operator of enum costs more than making a column.
_GAPS = int(FrameFlag.GAPS)
_CONSTANT = int(Encoding.CONSTANT)
_VALIDITY = int(Encoding.VALIDITY)
_INT64 = pa.int64()
_UINT8 = pa.uint8()
# The four characters of every 16-bit number in hexadecimal, as one word each.
_DIGITS = np.frombuffer(
    "".join(f"{number:04x}" for number in range(1 << 16)).encode(), np.uint32
)

Make = Callable[[Batch, int], pa.Array]
Find = Callable[[Batch, int], pa.Array | None]
Int64Array = np.ndarray[tuple[int], np.dtype[np.int64]]
Digits = np.ndarray[tuple[int], np.dtype[np.uint32]]


def _offsets(batch: Batch, count: int) -> pa.Array:
    if batch.header.flags & _GAPS:
        values = _deltas(batch)
        values += batch.header.base_offset
        return _numbers(_INT64, values)
    first = batch.header.base_offset + batch.lo
    block, at = divmod(first, _BLOCK)
    if at + count <= _BLOCK:
        return _offset_block(block).slice(at, count)
    return _numbers(_INT64, np.arange(first, first + count))


def _timestamps(batch: Batch, count: int) -> pa.Array:
    found = batch.region(Column.TIMESTAMP)
    if found is not None:
        return _plain(TIMESTAMP, found[1], batch.lo, count)
    value = batch.header.min_timestamp_ms.to_bytes(8, "little", signed=True)
    return _plain(TIMESTAMP, value * count, 0, count)


def _ids(batch: Batch, count: int) -> pa.Array:
    given = _values(batch, Column.ID, TEXT, count)
    if given is None:
        return _generated_ids(batch, count)
    if given.null_count:
        return pc.coalesce(given, _generated_ids(batch, count))
    return given


def _payloads(batch: Batch, count: int) -> pa.Array:
    array = _values(batch, Column.PAYLOAD, BYTES, count)
    return pa.repeat(pa.scalar(b"", BYTES), count) if array is None else array


def _priorities(batch: Batch, count: int) -> pa.Array | None:
    found = batch.region(Column.PRIORITY)
    if found is None:
        return None
    encoding, data = found
    if encoding & _CONSTANT:
        return pa.repeat(pa.scalar(data[0], _UINT8), count)
    return _plain(_UINT8, data, batch.lo, count)


def _headers(batch: Batch, count: int) -> pa.Array | None:
    found = batch.region(Column.HEADERS)
    if found is None:
        return None
    if found[0] & _CONSTANT:
        one = _maps(found[1], 1, 0, 1)
        return one.take(pa.repeat(pa.scalar(0), count))
    return _maps(found[1], batch.header.events, batch.lo, count)


def _maps(data: memoryview, events: int, lo: int, count: int) -> pa.Array:
    bounds, names, values = split_maps(data, events)
    entries = bounds[events]
    pairs = [_binary(TEXT, data, entries, None, 0, entries) for data in (names, values)]
    children = [pa.Array.from_buffers(_ENTRIES, entries, _NO_NULLS, 0, 0, pairs)]
    buffers = [None, pa.py_buffer(bounds)]
    return pa.Array.from_buffers(HEADERS, count, buffers, 0, lo, children)


def _times(column: Column, batch: Batch, count: int) -> pa.Array | None:
    """Milliseconds as they lie in a frame: 0 is none."""
    found = batch.region(column)
    if found is None:
        return None
    values = np.frombuffer(found[1], np.int64)
    if found[0] & _CONSTANT:
        values = np.repeat(values[:1], count)
    else:
        values = values[batch.lo : batch.lo + count]
    return pa.array(values, mask=values == 0).cast(TIMESTAMP)


def _find(field: Field) -> tuple[int, Find]:
    """The id of an optional column in a frame, and what makes an array of it."""
    column = Column[field.name.upper()]
    match field.kind:
        case "level":
            return int(column), _priorities
        case "map":
            return int(column), _headers
        case "time":
            return int(column), partial(_times, column)
    type_ = _TYPES[field.arrow]
    return int(column), lambda batch, count: _values(batch, column, type_, count)


_ALWAYS: dict[str, Make] = {
    "offset": _offsets,
    "timestamp": _timestamps,
    "id": _ids,
    "payload": _payloads,
}
_OPTIONAL = {one.name: _find(one) for one in OPTIONAL if one.name != "id"}


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """Some columns: their row type, and what fills which place."""

    row: pa.DataType
    always: list[tuple[int, Make]]
    optional: list[tuple[int, int, Find]]


@lru_cache(maxsize=_KEPT)
def _plan(columns: tuple[str, ...]) -> _Plan:
    for name in columns:
        if name not in SCHEMA.names:
            raise InvalidOption("columns", name, f"one of {', '.join(SCHEMA.names)}")
    places = list(enumerate(columns))
    return _Plan(
        pa.struct([SCHEMA.field(name) for name in columns]),
        [(slot, _ALWAYS[name]) for slot, name in places if name in _ALWAYS],
        [(slot, *_OPTIONAL[name]) for slot, name in places if name in _OPTIONAL],
    )


_EVERYTHING = _plan(tuple(SCHEMA.names))


@lru_cache(maxsize=_KEPT)
def _defaults(plan: _Plan, count: int) -> list[pa.Array | None]:
    """The columns as they are when the frame leaves them out."""
    return [_default(field, count) for field in plan.row]


def _default(field: pa.Field, count: int) -> pa.Array | None:
    if field.name in _ALWAYS:
        return None
    if field.nullable:
        return pa.nulls(count, field.type)
    empty: object = [] if field.type == HEADERS else 0
    return pa.array([empty], field.type).take(pa.repeat(pa.scalar(0), count))


def _values(
    batch: Batch, column: Column, type_: pa.DataType, count: int
) -> pa.Array | None:
    """A binary or text column of the frame; None if the frame leaves it out."""
    found = batch.region(column)
    if found is None:
        return None
    encoding, data = found
    if encoding & _CONSTANT:
        return pa.repeat(pa.scalar(data.tobytes(), type_), count)
    events, valid = batch.header.events, None
    if encoding & _VALIDITY:
        length = (events + 7) // 8
        valid = pa.py_buffer(data[:length])
        data = data[length + -length % 8 :]
    return _binary(type_, data, events, valid, batch.lo, count)


def _binary(
    type_: pa.DataType,
    data: memoryview,
    events: int,
    valid: pa.Buffer | None,
    offset: int,
    count: int,
) -> pa.Array:
    """Binary values as they lie in a frame: int32 offsets, padding, bytes."""
    end = 4 * (events + 1)
    buffers = [valid, pa.py_buffer(data[:end]), pa.py_buffer(data[end + -end % 8 :])]
    nulls = 0 if valid is None else -1  # -1: not counted yet
    return pa.Array.from_buffers(type_, count, buffers, nulls, offset)


def _plain(type_: pa.DataType, data: Buffer, offset: int, count: int) -> pa.Array:
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(data)], 0, offset)


def _numbers(type_: pa.DataType, values: Int64Array) -> pa.Array:
    return pa.Array.from_buffers(type_, len(values), [None, pa.py_buffer(values)], 0)


def _generated_ids(batch: Batch, count: int) -> pa.Array:
    """The id base plus the distance to the base offset, as text (model/ids.py)."""
    if not count:
        return pa.array([], TEXT)
    header = batch.header
    base = header.id_base
    # Every id starts as one that is like them; then the digits that differ are put in.
    ids = bytearray(_id_of(batch, 0).encode()) * count
    digits = _DIGITS
    first = int.from_bytes(base[-2:], "big") + batch.lo
    if first + count <= len(digits) and not header.flags & _GAPS:
        _digits_at(ids, count, 32)[:] = digits[first : first + count]
    else:
        values = _distances(batch) + int.from_bytes(base[-4:], "big")
        _digits_at(ids, count, 28)[:] = digits[values >> 16 & 0xFFFF]
        _digits_at(ids, count, 32)[:] = digits[values & 0xFFFF]
        if values[-1] >> 32:
            _carry(ids, batch, values)
    if batch.ids_by_time:
        _put_times(ids, batch, count)
    buffers = [None, _id_bounds(count), pa.py_buffer(ids)]
    return pa.Array.from_buffers(TEXT, count, buffers, 0)


def _put_times(ids: bytearray, batch: Batch, count: int) -> None:
    """Have ids say the times of their events, not the smallest of the frame."""
    header = batch.header
    low, high = header.min_timestamp_ms, header.max_timestamp_ms
    found = batch.region(Column.TIMESTAMP)
    for at, bits in ((0, 32), (4, 16), (9, 0)):
        # Most frames are of a few seconds: 16 bits of the time are all that differs.
        if found is not None and low >> bits != high >> bits:
            place = batch.lo * 8 + bits // 8
            part = np.ndarray((count,), np.uint16, found[1], place, (8,))
            _digits_at(ids, count, at)[:] = _DIGITS.take(part)


def _carry(ids: bytearray, batch: Batch, values: Int64Array) -> None:
    """Put in the whole of the ids whose counter has run over."""
    low = int.from_bytes(batch.header.id_base[-4:], "big")
    for index in np.flatnonzero(values >> 32).tolist():
        at = index * _ID_BYTES
        text = _id_of(batch, int(values[index]) - low)
        ids[at : at + _ID_BYTES] = text.encode()


def _id_of(batch: Batch, delta: int) -> str:
    """The id of the event ``delta`` offsets behind the base; of the smallest time,
    if it is to say that of its own event."""
    header = batch.header
    if batch.ids_by_time:
        return event_id_at(header.id_base, delta, header.min_timestamp_ms)
    return event_id(header.id_base, delta)


def _digits_at(ids: bytearray, count: int, at: int) -> Digits:
    """Four characters of every id."""
    return np.ndarray((count,), np.uint32, ids, at, _ID_STRIDE)


def _distances(batch: Batch) -> Int64Array:
    """Distances of the events in view to the base offset."""
    if batch.header.flags & _GAPS:
        return _deltas(batch)
    return np.arange(batch.lo, batch.hi)


def _deltas(batch: Batch) -> Int64Array:
    found = batch.region(Column.OFFSET)
    assert found is not None, "a frame with gaps has an OFFSET column"
    return np.frombuffer(found[1], np.uint32)[batch.lo : batch.hi].astype(np.int64)


@lru_cache(maxsize=_KEPT)
def _id_bounds(count: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(count + 1, dtype=np.int32) * np.int32(_ID_BYTES))


@lru_cache(maxsize=4)
def _offset_block(number: int) -> pa.Array:
    """The offsets of one block: reading on, most batches are a slice of it."""
    return pa.array(np.arange(number * _BLOCK, (number + 1) * _BLOCK))
