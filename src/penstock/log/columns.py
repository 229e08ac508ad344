"""A batch frame written: columns of events to the bytes of frame.py.

One line for each column, with its id and its encoding: what is on disk says so here.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import cast

from penstock.files import Buffer
from penstock.log.frame import (
    HEADER_BYTES,
    TABLE_ENTRY,
    Column,
    Encoding,
    FrameFlag,
    FrameHeader,
    build,
    padding,
)
from penstock.model.columns import MAX_FRAME_BYTES, Columns, Headers, distinct
from penstock.model.event import TIMES

# Plain numbers: an operator of enum costs more than the rest of the line.
_GAPS = int(FrameFlag.GAPS)
_IDS_BY_TIME = int(FrameFlag.IDS_BY_TIME)


def frame_of(columns: Columns, base_offset: int, id_base: bytes) -> bytearray:
    """One sealed frame that holds all the events, from ``base_offset`` on."""
    count = len(columns.payloads)
    stamps = columns.distinct_timestamps()
    low, high = min(stamps), max(stamps)
    table: list[bytes] = []
    parts: list[Buffer] = []

    def put(column: Column, encoding: int, pieces: Sequence[Buffer]) -> None:
        length = sum(map(len, pieces))
        table.append(TABLE_ENTRY.pack(column, encoding, 0, length))
        parts.extend(pieces)
        parts.append(padding(length))

    if low != high:
        data = array("q", columns.timestamps).tobytes()
        put(Column.TIMESTAMP, Encoding.PLAIN, [data])
    if columns.priorities is not None:
        put(Column.PRIORITY, *_fixed(bytes(columns.priorities), 1))
    if columns.ids is not None:
        put(Column.ID, *_texts(columns.ids))
    if columns.keys is not None:
        put(Column.KEY, *_nullable(columns.keys))
    if columns.headers is not None:
        put(Column.HEADERS, *_maps(columns.headers))
    put(Column.PAYLOAD, Encoding.PLAIN, _plain(columns.payloads))
    if columns.parents is not None:
        put(Column.PARENT, *_texts(columns.parents))
    if columns.producers is not None:
        put(Column.PRODUCER, *_texts(columns.producers))
    for field in TIMES:
        if (times := getattr(columns, field.column)) is not None:
            put(Column[field.name.upper()], *_times(times))
    span, flags = count, _IDS_BY_TIME if columns.ids_by_time else 0
    if columns.offsets is not None:
        span = max(columns.span, columns.offsets[-1] + 1)
        flags |= _GAPS
        put(Column.OFFSET, Encoding.PLAIN, [array("I", columns.offsets).tobytes()])
    parts[:0] = table
    length = HEADER_BYTES + sum(map(len, parts))
    assert length <= MAX_FRAME_BYTES, "checked before it was taken in"
    header = FrameHeader(
        flags, len(table), length, 0, base_offset, count, span, low, high, id_base
    )
    return build(parts, header)


Encoded = tuple[int, Sequence[Buffer]]


def _fixed(data: bytes, width: int) -> Encoded:
    """Fixed-width values, once if they are all the same."""
    if data == data[:width] * (len(data) // width):
        return Encoding.CONSTANT, [data[:width]]
    return Encoding.PLAIN, [data]


def _times(times: Sequence[int]) -> Encoded:
    """Milliseconds, 0 for none."""
    return _fixed(array("q", times).tobytes(), 8)


def _plain(values: Sequence[bytes]) -> list[Buffer]:
    """Arrow's layout of binary values: offsets, padding, bytes."""
    return _laid_out(map(len, values), b"".join(values))


def _laid_out(lengths: Iterable[int], data: bytes) -> list[Buffer]:
    offsets = array("i", accumulate(lengths, initial=0)).tobytes()
    return [offsets, padding(len(offsets)), data]


def _texts(values: Sequence[str | None]) -> Encoded:
    first = values[0]
    if first is not None and values.count(first) == len(values):
        return Encoding.CONSTANT, [first.encode()]
    if None in values:
        return _nullable([None if text is None else text.encode() for text in values])
    # None of them is None.
    return Encoding.PLAIN, _plain_texts(cast("Sequence[str]", values))


def _plain_texts(texts: Sequence[str]) -> list[Buffer]:
    joined = "".join(texts)
    if not joined.isascii():
        return _plain([text.encode() for text in texts])
    # Characters are bytes: one encoding for all of them.
    return _laid_out(map(len, texts), joined.encode())


def _nullable(values: Sequence[bytes | None]) -> Encoded:
    first = values[0]
    if first is not None and values.count(first) == len(values):
        return Encoding.CONSTANT, [first]
    if None not in values:
        return Encoding.PLAIN, _plain(cast("Sequence[bytes]", values))
    bits = validity(values)
    head: list[Buffer] = [bits, padding(len(bits))]
    data = [b"" if value is None else value for value in values]
    return Encoding.PLAIN | Encoding.VALIDITY, head + _plain(data)


def validity(values: Sequence[object | None]) -> bytes:
    """Arrow's validity bitmap: bit i (least significant first) is set if value i is."""
    text = "".join("0" if value is None else "1" for value in reversed(values))
    return int(text, 2).to_bytes((len(values) + 7) // 8, "little")


def _maps(headers: Sequence[Headers]) -> Encoded:
    """Arrow's layout of map<string, string>: entry offsets, then keys, then values.

    Once if they are all the same.
    """
    count, headers = len(headers), distinct(headers)
    encoding = Encoding.PLAIN if len(headers) == count else Encoding.CONSTANT
    entries = array("i", accumulate(map(len, headers), initial=0)).tobytes()
    names = list(chain.from_iterable(headers))
    values = list(chain.from_iterable([header.values() for header in headers]))
    keys = b"".join(_plain_texts(names))
    head: list[Buffer] = [entries, padding(len(entries)), keys, padding(len(keys))]
    return encoding, head + _plain_texts(values)
