"""Events on their way in: plain lists, turned into a batch frame once per group.

Optional columns stay ``None`` while every event has the default, so a payload-only
publisher pays for payloads alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain
from typing import TypeVar, cast

from penstock.errors import InvalidBatch
from penstock.files import Buffer
from penstock.log.frame import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    TABLE_ENTRY,
    Column,
    Encoding,
    Flag,
    FrameHeader,
    build,
    padding,
)
from penstock.model.event import MAX_PRIORITY, Event

T = TypeVar("T")
Headers = Mapping[str, str]

# What a row takes at most besides its bytes: timestamp, priority, six int32 offsets
# and a bit of validity each; and a header its two.
_ROW_BYTES = 40
_ENTRY_BYTES = 8
# Leaves room for the frame's header, column table and paddings.
MAX_BATCH_BYTES = MAX_FRAME_BYTES - 4096

_OPTIONAL = (
    "ids",
    "keys",
    "priorities",
    "headers",
    "parents",
    "producers",
)


class Columns:
    """Some events in columns. ``add`` or ``extend`` them, ``encode`` once."""

    __slots__ = (
        "headers",
        "ids",
        "keys",
        "offsets",
        "parents",
        "payloads",
        "priorities",
        "producers",
        "size",
        "span",
        "timestamps",
    )

    def __init__(
        self,
        payloads: Iterable[bytes] = (),
        timestamp_ms: int | Sequence[int] = 0,
        *,
        ids: Sequence[str | None] | None = None,
        keys: Sequence[bytes | None] | None = None,
        priorities: Sequence[int] | None = None,
        headers: Sequence[Headers] | None = None,
        parents: Sequence[str | None] | None = None,
        producer: str | None = None,
    ) -> None:
        self.payloads: list[bytes] = list(payloads)
        count = len(self.payloads)
        if isinstance(timestamp_ms, int):
            self.timestamps: list[int] = [timestamp_ms] * count
        else:
            self.timestamps = list(timestamp_ms)
        self.ids = None if ids is None else list(ids)
        self.keys = None if keys is None else list(keys)
        self.priorities = None if priorities is None else list(priorities)
        self.headers = None if headers is None else list(headers)
        self.parents = None if parents is None else list(parents)
        self.producers: list[str | None] | None = (
            None if producer is None else [producer] * count
        )
        self.size = 0
        # Offsets relative to the base; None: dense. Only compaction sets it.
        self.offsets: list[int] | None = None
        # Offsets to cover, if there are more than the events need.
        self.span = 0

    def __len__(self) -> int:
        return len(self.payloads)

    def add(self, event: Event) -> None:
        """Append one event with everything it has but its offset."""
        self.extend(
            Columns(
                [event.payload],
                event.timestamp_ms,
                ids=[event.id],
                keys=None if event.key is None else [event.key],
                priorities=[event.priority] if event.priority else None,
                headers=[event.headers] if event.headers else None,
                parents=None if event.parent is None else [event.parent],
                producer=event.producer,
            )
        )

    def pick(self, indexes: Sequence[int]) -> Columns:
        """Some of the events, as columns of their own."""
        picked = Columns([self.payloads[index] for index in indexes])
        picked.timestamps = [self.timestamps[index] for index in indexes]
        for name in _OPTIONAL:
            column = getattr(self, name)
            if column is not None:
                setattr(picked, name, [column[index] for index in indexes])
        return picked

    def extend(self, other: Columns) -> None:
        """Append all events of ``other``."""
        if not (self._is_bare() and other._is_bare()):
            self._extend_metadata(other, len(self.payloads), len(other.payloads))
        self.payloads.extend(other.payloads)
        self.timestamps.extend(other.timestamps)

    def _extend_metadata(self, other: Columns, mine: int, theirs: int) -> None:
        self.ids = _joined(self.ids, mine, other.ids, theirs, None)
        self.keys = _joined(self.keys, mine, other.keys, theirs, None)
        self.priorities = _joined(self.priorities, mine, other.priorities, theirs, 0)
        self.headers = _joined(self.headers, mine, other.headers, theirs, {})
        self.parents = _joined(self.parents, mine, other.parents, theirs, None)
        self.producers = _joined(self.producers, mine, other.producers, theirs, None)

    def _is_bare(self) -> bool:
        """Payloads and timestamps only, as most events are."""
        return (
            self.ids is None
            and self.keys is None
            and self.priorities is None
            and self.headers is None
            and self.parents is None
            and self.producers is None
        )

    def check(self, max_event_bytes: int = MAX_BATCH_BYTES) -> int:
        """The size at most; raises InvalidBatch for what cannot be stored."""
        count = len(self.payloads)
        if not count:
            raise InvalidBatch("number of events", 0, "at least 1")
        wrong = set(map(type, self.payloads)) - {bytes}
        if wrong:
            raise InvalidBatch("payload", f"of {wrong.pop().__name__}", "bytes")
        total = sum(map(len, self.payloads))
        if total > max_event_bytes:
            largest = max(map(len, self.payloads))
            if largest > max_event_bytes:
                limit = f"at most {max_event_bytes}"
                raise InvalidBatch("payload size", largest, limit)
        if len(self.timestamps) != count:
            raise InvalidBatch("number of timestamps", len(self.timestamps), f"{count}")
        try:
            array("q", self._distinct_timestamps())
        except (TypeError, OverflowError) as error:
            limit = "whole milliseconds within 64 bits"
            raise _unacceptable("timestamp", error, limit) from None
        size = total + _ROW_BYTES * count
        if not self._is_bare():
            size += self._checked_metadata(count)
        if size > MAX_BATCH_BYTES:
            raise InvalidBatch("batch size", size, f"at most {MAX_BATCH_BYTES}")
        self.size = size
        return size

    def _checked_metadata(self, count: int) -> int:
        """Bytes of the optional columns, proven to be encodable."""
        for name in _OPTIONAL:
            column: Sequence[object] | None = getattr(self, name)
            if column is not None and len(column) != count:
                raise InvalidBatch(f"number of {name}", len(column), f"{count}")
        size, what, limit = 0, "", ""
        try:
            if self.priorities is not None:
                what, limit = "priority", f"a whole number from 0 to {MAX_PRIORITY}"
                size += len(bytes(self.priorities))
            if self.keys is not None:
                what, limit = "key", "bytes or None"
                size += len(b"".join([key for key in self.keys if key is not None]))
            limit = "valid Unicode text or None"
            for what in ("ids", "parents", "producers"):
                texts: Sequence[str | None] | None = getattr(self, what)
                if texts is not None:
                    distinct_texts = _distinct(texts)
                    given = [text for text in distinct_texts if text is not None]
                    once = len("".join(given).encode())
                    size += once * (count // len(distinct_texts))
            if self.headers is not None:
                what, limit = "headers", "mappings of valid Unicode text"
                distinct = _distinct(self.headers)
                values = chain.from_iterable([header.values() for header in distinct])
                texts_of = "".join(chain(chain.from_iterable(distinct), values))
                entries = sum(map(len, distinct))
                once = len(texts_of.encode()) + _ENTRY_BYTES * entries
                size += once * (count // len(distinct))
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise _unacceptable(what, error, limit) from None
        return size

    def _distinct_timestamps(self) -> list[int]:
        """The timestamps, or the only one there is: a batch tends to have one."""
        first = self.timestamps[0]
        if self.timestamps.count(first) == len(self.timestamps):
            return [first]
        return self.timestamps

    def encode(self, base_offset: int, id_base: bytes) -> bytearray:
        """One sealed frame that holds all the events, from ``base_offset`` on."""
        count = len(self.payloads)
        distinct = self._distinct_timestamps()
        low, high = min(distinct), max(distinct)
        table: list[bytes] = []
        parts: list[Buffer] = []

        def put(column: Column, encoding: int, pieces: Sequence[Buffer]) -> None:
            length = sum(map(len, pieces))
            table.append(TABLE_ENTRY.pack(column, encoding, 0, length))
            parts.extend(pieces)
            parts.append(padding(length))

        if low != high:
            data = array("q", self.timestamps).tobytes()
            put(Column.TIMESTAMP, Encoding.PLAIN, [data])
        if self.priorities is not None:
            put(Column.PRIORITY, *_fixed(bytes(self.priorities), 1))
        if self.ids is not None:
            put(Column.ID, *_texts(self.ids))
        if self.keys is not None:
            put(Column.KEY, *_nullable(self.keys))
        if self.headers is not None:
            put(Column.HEADERS, *_maps(self.headers))
        put(Column.PAYLOAD, Encoding.PLAIN, _plain(self.payloads))
        if self.parents is not None:
            put(Column.PARENT, *_texts(self.parents))
        if self.producers is not None:
            put(Column.PRODUCER, *_texts(self.producers))
        span, flags = count, 0
        if self.offsets is not None:
            span = max(self.span, self.offsets[-1] + 1)
            flags = int(Flag.GAPS)
            put(Column.OFFSET, Encoding.PLAIN, [array("I", self.offsets).tobytes()])
        parts[:0] = table
        length = HEADER_BYTES + sum(map(len, parts))
        assert length <= MAX_FRAME_BYTES, "checked before it was taken in"
        header = FrameHeader(
            flags, len(table), length, 0, base_offset, count, span, low, high, id_base
        )
        return build(parts, header)


def _joined(
    mine: list[T] | None, count: int, theirs: list[T] | None, more: int, default: T
) -> list[T] | None:
    if mine is None and theirs is None:
        return None
    if mine is None:
        mine = [default] * count
    mine.extend([default] * more if theirs is None else theirs)
    return mine


def _unacceptable(field: str, error: Exception, limit: str) -> InvalidBatch:
    return InvalidBatch(field, f"not acceptable ({error})", limit)


Encoded = tuple[int, Sequence[Buffer]]


def _fixed(data: bytes, width: int) -> Encoded:
    """Fixed-width values, once if they are all the same."""
    if data == data[:width] * (len(data) // width):
        return Encoding.CONSTANT, [data[:width]]
    return Encoding.PLAIN, [data]


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


def _distinct(values: Sequence[T]) -> Sequence[T]:
    """The values, or the only one there is: a publisher tends to repeat itself."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _maps(headers: Sequence[Headers]) -> Encoded:
    """Arrow's layout of map<string, string>: entry offsets, then keys, then values.

    Once if they are all the same.
    """
    count, headers = len(headers), _distinct(headers)
    encoding = Encoding.PLAIN if len(headers) == count else Encoding.CONSTANT
    entries = array("i", accumulate(map(len, headers), initial=0)).tobytes()
    names = list(chain.from_iterable(headers))
    values = list(chain.from_iterable([header.values() for header in headers]))
    keys = b"".join(_plain_texts(names))
    head: list[Buffer] = [entries, padding(len(entries)), keys, padding(len(keys))]
    return encoding, head + _plain_texts(values)
