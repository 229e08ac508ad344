"""A batch read back: a view of one frame's bytes; nothing is copied until asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any, cast

from penstock.errors import InvalidBatch
from penstock.files import Buffer
from penstock.log.frame import (
    HEADER_BYTES,
    TABLE_ENTRY,
    Column,
    Encoding,
    FrameFlag,
    FrameHeader,
    intact,
    pack,
    peek,
)
from penstock.model import ids
from penstock.model.columns import STORED, Columns, events_of
from penstock.model.event import OPTIONAL, Event

# A plain number: an operator of enum costs more than the test is worth.
_GAPS = int(FrameFlag.GAPS)
_IDS_BY_TIME = int(FrameFlag.IDS_BY_TIME)
# The ids of columns that a frame may leave out, by the names of the columns.
_IDS = {one.column: Column[one.name.upper()] for one in OPTIONAL}


class Batch:
    """Events ``lo`` to ``hi`` of one verified frame: its header and its body."""

    __slots__ = ("_offsets", "_regions", "body", "header", "hi", "lo", "topic")

    def __init__(
        self, topic: str, body: memoryview, header: FrameHeader, lo: int, hi: int
    ) -> None:
        self.topic = topic
        self.body = body
        self.header = header
        self.lo = lo
        self.hi = hi
        self._regions: dict[int, tuple[int, int, int]] | None = None
        self._offsets: memoryview | None = None

    @classmethod
    def whole(cls, topic: str, header: FrameHeader, body: memoryview) -> Batch:
        """All events of a verified frame."""
        return cls(topic, body, header, 0, header.events)

    @classmethod
    def of(cls, topic: str, frame: Buffer) -> Batch:
        """The whole of a frame that is known to be intact."""
        header = peek(frame, 0)
        if header is None:
            raise ValueError("not a batch frame")
        return cls.whole(topic, header, memoryview(frame)[HEADER_BYTES : header.length])

    @classmethod
    def received(cls, topic: str, frame: memoryview) -> Batch:
        """The batch of a frame that a peer has sent; raises InvalidBatch for junk."""
        header, size = peek(frame, 0), len(frame)
        if header is None or header.length != size or not intact(frame, 0, header):
            raise InvalidBatch(
                "frame", f"{size} bytes that are no frame", "a whole one"
            )
        table = HEADER_BYTES + header.columns * TABLE_ENTRY.size
        lengths = [
            TABLE_ENTRY.unpack_from(frame, at)[3]
            for at in range(HEADER_BYTES, min(table, size), TABLE_ENTRY.size)
        ]
        if table + sum(length + -length % 8 for length in lengths) != size:
            what = f"a frame of {size} bytes with columns of other lengths"
            raise InvalidBatch("frame", what, "as long as its columns")
        return cls.whole(topic, header, frame[HEADER_BYTES:])

    def frame(self) -> bytes:
        """The whole frame that this is a view of, as it is stored."""
        return b"".join((pack(self.header), self.body))

    def __len__(self) -> int:
        return self.hi - self.lo

    @property
    def base_offset(self) -> int:
        """Offset of the first event in view."""
        return self.offset_of(self.lo)

    @property
    def end_offset(self) -> int:
        """The offset behind the last one this view covers."""
        if self.hi == self.header.events:
            return self.header.end_offset
        return self.offset_of(self.hi)

    @property
    def dense(self) -> bool:
        return not self.header.flags & _GAPS

    @property
    def ids_by_time(self) -> bool:
        """Whether generated ids say the time of their events, not that of the base."""
        return self.header.flags & _IDS_BY_TIME != 0

    def offset_of(self, index: int) -> int:
        if self.dense:
            return self.header.base_offset + index
        return self.header.base_offset + self._deltas()[index]

    def index_of(self, offset: int) -> int:
        """Index of the first event at or behind ``offset``."""
        delta = max(offset - self.header.base_offset, 0)
        if self.dense:
            return min(delta, self.header.events)
        deltas = self._deltas()
        return next((i for i, d in enumerate(deltas) if d >= delta), len(deltas))

    def since(self, offset: int) -> Batch:
        """The part of this view at or behind ``offset``."""
        lo = max(self.lo, self.index_of(offset))
        return Batch(self.topic, self.body, self.header, min(lo, self.hi), self.hi)

    def before(self, offset: int) -> Batch:
        """The part of this view in front of ``offset``."""
        hi = min(self.hi, self.index_of(offset))
        return Batch(self.topic, self.body, self.header, self.lo, max(hi, self.lo))

    def columns(self) -> Collection[int]:
        """Ids of the columns the frame has."""
        if self._regions is None:
            self._regions = self._parse_table()
        return self._regions.keys()

    def region(self, column: Column) -> tuple[int, memoryview] | None:
        """Encoding and bytes of a column, or None if the frame leaves it out."""
        if self._regions is None:
            self._regions = self._parse_table()
        found = self._regions.get(column)
        if found is None:
            return None
        encoding, start, length = found
        return encoding, self.body[start : start + length]

    def timestamps(self) -> list[int]:
        found = self.region(Column.TIMESTAMP)
        if found is None:
            return [self.header.min_timestamp_ms] * len(self)
        return found[1].cast("q")[self.lo : self.hi].tolist()

    def priorities(self) -> list[int]:
        found = self.region(Column.PRIORITY)
        if found is None:
            return [0] * len(self)
        encoding, data = found
        if encoding & Encoding.CONSTANT:
            return [data[0]] * len(self)
        return data[self.lo : self.hi].tolist()

    def payloads(self) -> list[bytes]:
        found = self.region(Column.PAYLOAD)
        if found is None:
            return [b""] * len(self)
        return self._binary(found[1], self.header.events, self.lo, self.hi)

    def keys(self) -> list[bytes | None]:
        return self._nullable(Column.KEY)

    def parents(self) -> list[str | None]:
        return self._texts(Column.PARENT)

    def producers(self) -> list[str | None]:
        return self._texts(Column.PRODUCER)

    def expires(self) -> list[int]:
        """0: it does not."""
        return self._times(Column.EXPIRES)

    def not_before(self) -> list[int]:
        """0: it may be delivered at once."""
        return self._times(Column.NOT_BEFORE)

    def ids(self) -> list[str]:
        """Ids as published, generated ones made up from the id base."""
        if self.region(Column.ID) is None:
            return self._generated()
        given = self._texts(Column.ID)
        if None not in given:
            return cast("list[str]", given)  # as all of them are
        return [
            generated if text is None else text
            for text, generated in zip(given, self._generated(), strict=True)
        ]

    def common_headers(self) -> dict[str, str] | None:
        """The headers that all events have, if the frame says so at once."""
        found = self.region(Column.HEADERS)
        if found is None:
            return {}
        encoding, data = found
        if not encoding & Encoding.CONSTANT and self.header.events > 1:
            return None
        bounds, names, values = split_maps(data, 1)
        keys = [name.decode() for name in self._binary(names, bounds[1], 0, bounds[1])]
        texts = [one.decode() for one in self._binary(values, bounds[1], 0, bounds[1])]
        return dict(zip(keys, texts, strict=True))

    def headers(self) -> list[dict[str, str]]:
        common = self.common_headers()
        if common is not None:
            return [common.copy() for _ in range(len(self))]
        found = self.region(Column.HEADERS)
        assert found is not None, "then they have none in common"
        bounds, names, values = split_maps(found[1], self.header.events)
        entries = bounds[self.header.events]
        # Those in view only: the whole frame may have very many more.
        cuts = bounds[self.lo : self.hi + 1].tolist()
        first, last = cuts[0], cuts[-1]
        keys = [name.decode() for name in self._binary(names, entries, first, last)]
        texts = [text.decode() for text in self._binary(values, entries, first, last)]
        spans = [(a - first, b - first) for a, b in pairwise(cuts)]
        return [dict(zip(keys[a:b], texts[a:b], strict=True)) for a, b in spans]

    def offsets(self) -> list[int]:
        base = self.header.base_offset
        if self.dense:
            return list(range(base + self.lo, base + self.hi))
        return [base + delta for delta in self._deltas()[self.lo : self.hi]]

    def given(self, column: str) -> list[Any] | None:
        """A column by its name; None if the frame leaves it out."""
        # Any: the values of whichever field. Generated ids, too, are left out.
        id_ = _IDS.get(column)
        if id_ is not None and id_ not in self.columns():
            return None
        values: list[Any] = getattr(self, column)()
        return values

    def to_columns(self) -> Columns:
        """The events as columns; an id that was generated is left out."""
        columns = Columns(self.payloads(), self.timestamps())
        for one in OPTIONAL:
            if _IDS[one.column] not in self.columns():
                continue
            named = one.column == "ids"
            values = self._texts(Column.ID) if named else self.given(one.column)
            setattr(columns, one.column, values)
        return columns

    def events(self) -> Iterator[Event]:
        """The events in view as objects, for those who want them one by one."""
        columns = {one.column: getattr(self, one.column)() for one in STORED}
        return events_of(self.topic, columns, len(self))

    def take(self, indexes: list[int]) -> Columns:
        """Some events (indexes into this view, ascending) as columns with gaps."""
        taken = Columns()
        rows = list(self.events())
        for index in indexes:
            taken.add(rows[index])
        # A generated id follows from the offset, which stays.
        given = self._nullable(Column.ID)
        if given.count(None) == len(given):
            taken.ids = None
        elif taken.ids is not None:
            for place, index in enumerate(indexes):
                if given[index] is None:
                    taken.ids[place] = None
        taken.ids_by_time = self.ids_by_time
        offsets = self.offsets()
        taken.offsets = [offsets[i] - self.header.base_offset for i in indexes]
        return taken

    def _generated(self) -> list[str]:
        dense = range(self.lo, self.hi)
        deltas = dense if self.dense else self._deltas()[self.lo : self.hi]
        base = self.header.id_base
        if self.ids_by_time:
            return ids.event_ids_at(base, deltas, self.timestamps())
        return ids.event_ids(base, deltas)

    def _deltas(self) -> memoryview:
        if self._offsets is None:
            found = self.region(Column.OFFSET)
            assert found is not None, "a frame with gaps has an OFFSET column"
            self._offsets = found[1].cast("I")
        return self._offsets

    def _parse_table(self) -> dict[int, tuple[int, int, int]]:
        start = self.header.columns * TABLE_ENTRY.size
        regions = {}
        for entry in range(self.header.columns):
            at = entry * TABLE_ENTRY.size
            column, encoding, _, length = TABLE_ENTRY.unpack_from(self.body, at)
            regions[column] = (encoding, start, length)
            start += length + -length % 8
        return regions

    def _times(self, column: Column) -> list[int]:
        found = self.region(column)
        if found is None:
            return [0] * len(self)
        encoding, data = found
        times = data.cast("q")
        if encoding & Encoding.CONSTANT:
            return [times[0]] * len(self)
        return times[self.lo : self.hi].tolist()

    def _nullable(self, column: Column) -> list[bytes | None]:
        found = self.region(column)
        if found is None:
            return [None] * len(self)
        encoding, data = found
        if encoding & Encoding.CONSTANT:
            return [bytes(data)] * len(self)
        valid, data = split_validity(encoding, data, self.header.events)
        values: list[bytes | None] = list(
            self._binary(data, self.header.events, self.lo, self.hi)
        )
        if valid is None:
            return values
        # As text of binary digits, the first one last: linear, shifting a long number
        # by every index is not.
        part, top = valid[self.lo >> 3 : (self.hi + 7) >> 3], 1 << len(self)
        bits = int.from_bytes(part, "little") >> (self.lo & 7) & (top - 1)
        digits = f"{bits | top:b}"[:0:-1]
        return [
            value if digit == "1" else None
            for value, digit in zip(values, digits, strict=True)
        ]

    def _texts(self, column: Column) -> list[str | None]:
        """As ``_nullable``, with few calls for what is the same, or plain text."""
        found = self.region(column)
        if found is not None and found[0] & Encoding.CONSTANT:
            return [str(found[1], "utf-8")] * len(self)
        if found is None or found[0] & Encoding.VALIDITY:
            return _decoded(self._nullable(column))
        bounds, values = split_binary(found[1], self.header.events)
        cuts = bounds[self.lo : self.hi + 1].tolist()
        text = str(values[cuts[0] : cuts[-1]], "utf-8")
        if not text.isascii():  # characters are no bytes
            return _decoded(self._nullable(column))
        first = cuts[0]
        return [
            text[a - first : b - first] for a, b in zip(cuts, cuts[1:], strict=False)
        ]

    @staticmethod
    def _binary(data: memoryview, count: int, lo: int, hi: int) -> list[bytes]:
        bounds, values = split_binary(data, count)
        raw = values[bounds[lo] : bounds[hi]].tobytes()
        cuts = bounds[lo : hi + 1].tolist()
        first = cuts[0]
        return [
            raw[a - first : b - first] for a, b in zip(cuts, cuts[1:], strict=False)
        ]


def split_validity(
    encoding: int, data: memoryview, count: int
) -> tuple[memoryview | None, memoryview]:
    """Validity bitmap, if there is one, and the rest of a column."""
    if not encoding & Encoding.VALIDITY:
        return None, data
    length = (count + 7) // 8
    return data[:length], data[length + -length % 8 :]


def split_binary(data: memoryview, count: int) -> tuple[memoryview, memoryview]:
    """Offsets (as int32) and bytes of a binary column of ``count`` values."""
    length = 4 * (count + 1)
    return data[:length].cast("i"), data[length + -length % 8 :]


def split_maps(
    data: memoryview, count: int
) -> tuple[memoryview, memoryview, memoryview]:
    """Entry offsets, names and values of the headers column."""
    bounds, rest = split_binary(data, count)
    entries = bounds[count]
    cuts, names = split_binary(rest, entries)
    length = (4 * (entries + 1) + 7) // 8 * 8 + cuts[entries]
    return bounds, rest[:length], rest[length + -length % 8 :]


def _decoded(values: list[bytes | None]) -> list[str | None]:
    return [None if value is None else value.decode() for value in values]
