"""Rows: small events of many topics that share one entry of a group.

What a topic gets in a group is a frame of its own if it is much. A frame for every
topic that got one event or two costs more than the events do, so those of all such
topics lie in one frame, as they came, beside a table of the topics; unless there are
so few of those that each of them got much in the end. Memory takes them
as *parts*, one a topic, which become frames when they are read, or when they are
written out: then they are gathered with their neighbours (gather.py), and no segment
tells of rows.

The data of a ROWS entry, little-endian::

    0   4  number of topics
    4   4  CRC32C of all in front of the frame but itself
    8      table, 48 bytes a topic: topic id u64, base offset u64, number of events u32,
           zero u32, its latest timestamp i64, id base (16): of the event at the base
           offset, its time left out
    …      the place in the table of each event's topic, u32, zeros to a multiple of 8
    …      a batch frame of all events in the order in which they came

The events of a topic are numbered from its base offset on. A generated id has the time
of its event and counts from the id base of its topic.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import cast

from crc32c import crc32c

from penstock.errors import InvalidBatch
from penstock.files import Buffer
from penstock.log.batch import Batch
from penstock.log.columns import frame_of
from penstock.log.frame import HEADER_BYTES, padding
from penstock.log.tail import TailFrame
from penstock.log.topic import TopicLog
from penstock.model import ids
from penstock.model.columns import MAX_BATCH_BYTES, Columns

HEAD = struct.Struct("<II")
TABLE_ENTRY = struct.Struct("<QQI4xq16s")
_COUNT = struct.Struct("<I")
# An append of more events, or of more bytes, makes a frame of its own.
MAX_EVENTS = 16
MAX_BYTES = 1 << 12
# What has as much of either is no small frame: it costs its readers little enough.
SMALL_EVENTS = 256
SMALL_BYTES = 1 << 15
# What an event takes in memory besides its bytes, until it is written out.
EVENT_BYTES = 64
# Rows that are larger are followed by others: one frame holds them.
MAX_ROWS_BYTES = MAX_BATCH_BYTES // 2

# Columns that all events have.
_ALWAYS = ("payloads", "timestamps")
_NO_IDS = bytes(ids.ID_BYTES)


class Rows:
    """Events of several topics, collected in the open group."""

    __slots__ = (
        *("_bases", "_events", "_low_id", "_low_ids", "_row_bytes", "_size"),
        *("counts", "parts"),
        "topics",
    )

    def __init__(self, low_id: Callable[[TopicLog], int]) -> None:
        """``low_id``: from where the generated ids of a topic are counted."""
        self._low_id = low_id
        self._events = RowEvents(Columns(), [])
        self._bases: list[int] = []
        self._low_ids: list[int] = []
        self._row_bytes: list[int] = []
        self._size = 0
        self.topics: dict[TopicLog, int] = {}
        """In the order of the table, each with its place there."""
        self.counts: list[int] = []
        """How many events each of them has, once no more come."""
        self.parts: list[tuple[TopicLog, RowsPart]] = []
        """What each of them has, then."""

    @property
    def size(self) -> int:
        """What they take in memory, about."""
        return self._size + EVENT_BYTES * len(self._events.places)

    @property
    def plain(self) -> bool:
        """Whether no event has a priority or a time at which it is delivered."""
        columns = self._events.columns
        return columns.priorities is None and columns.not_before is None

    def add(
        self, topics: Sequence[TopicLog], events: Columns, row_bytes: Sequence[int]
    ) -> list[int]:
        """Take events, each of the topic at its place; the offsets they get."""
        known, offsets = self.topics, []
        for topic in topics:
            offset = topic.next_offset
            topic.next_offset = offset + 1
            if topic not in known:
                known[topic] = len(known)
                self._bases.append(offset)
                self._low_ids.append(self._low_id(topic) + offset)
            offsets.append(offset)
        self._events.places.extend(map(known.__getitem__, topics))
        self._events.columns.extend(events)
        self._row_bytes += row_bytes
        self._size += events.size
        return offsets

    def close(self) -> None:
        """No more come."""
        counts = self.counts = [*Counter(self._events.places).values()]
        latest, sizes = self._events.latest(), self._sizes(counts)
        rows = zip(self.topics, self._bases, counts, latest, self._low_ids, strict=True)
        self.parts = [
            (topic, RowsPart(self._events, place, size, base, count, stamp, low_id))
            for place, (size, (topic, base, count, stamp, low_id)) in enumerate(
                zip(sizes, rows, strict=True)
            )
        ]

    def _sizes(self, counts: list[int]) -> list[int]:
        """What the events of each topic take in memory, about."""
        each = self._row_bytes[0]
        if self._row_bytes.count(each) < len(self._row_bytes):
            return self._events.sizes(self._row_bytes)
        return [count * (each + EVENT_BYTES) for count in counts]

    def sizes(self) -> Iterator[tuple[TopicLog, int, int]]:
        """Topics, and how many events and about how many bytes each has."""
        for count, (topic, part) in zip(self.counts, self.parts, strict=True):
            yield topic, count, part.size

    @property
    def shares(self) -> bool:
        """Whether one frame for all is less work than one for each topic."""
        topics = len(self.topics)
        return topics > 1 and len(self._events.places) < SMALL_EVENTS * topics

    def encode(self) -> tuple[bytes, bytearray]:
        """The data of the entry: what is in front of the frame, and the frame."""
        table = [
            TABLE_ENTRY.pack(
                topic.id,
                part.base_offset,
                part.events,
                part.latest_ms,
                part.low_id.to_bytes(ids.ID_BYTES, "big"),
            )
            for topic, part in self.parts
        ]
        places = array("I", self._events.places).tobytes()
        rest = b"".join((*table, places, padding(len(places))))
        number = _COUNT.pack(len(table))
        head = number + _COUNT.pack(crc32c(rest, crc32c(number))) + rest
        return head, frame_of(self._events.columns, 0, _NO_IDS)


class RowEvents:
    """Events of several topics, and the place in the table of each event's topic.

    As they came at first. Once somebody asks for those of one topic, the events of each
    topic lie side by side: most are asked for when all of them are written out.
    """

    __slots__ = ("_given", "_lie", "columns", "places")

    def __init__(self, columns: Columns, places: list[int]) -> None:
        self.columns = columns
        """As they came."""
        self.places = places
        self._given: tuple[str, ...] | None = None
        self._lie: tuple[Columns, list[int]] | None = None
        """Those of each topic side by side, and where they begin; read by threads."""

    def latest(self) -> list[int]:
        """The latest timestamp of each topic."""
        stamps = self.columns.timestamps
        rows: Iterable[tuple[int, int]] = zip(self.places, stamps, strict=True)
        if stamps != sorted(stamps):
            rows = sorted(rows)
        # Places come one after the other, and of each the last row counts.
        latest = dict(rows)
        return [latest[place] for place in range(len(latest))]

    def sizes(self, row_bytes: Sequence[int]) -> list[int]:
        """What the events of each topic take in memory, about."""
        sizes = [0] * (max(self.places) + 1)
        for place, size in zip(self.places, row_bytes, strict=True):
            sizes[place] += size + EVENT_BYTES
        return sizes

    @property
    def given(self) -> tuple[str, ...]:
        """The optional columns that there are, when no more events come."""
        if self._given is None:
            self._given = (*self.columns.given(),)
        return self._given

    def by_topic(self) -> tuple[Columns, list[int]]:
        """The events of each topic side by side, and at its place where they begin;
        when no more come."""
        if self._lie is None:
            places, columns = self.places, self.columns
            counts = Counter(places)
            begins = [0, *accumulate(counts[at] for at in range(max(counts) + 1))]
            if len(counts) > 1:
                columns = columns.pick(
                    sorted(range(len(places)), key=places.__getitem__)
                )
            self._lie = columns, begins
        return self._lie

    def of(self, place: int) -> Columns:
        """The events of one topic, when no more come."""
        columns, begins = self.by_topic()
        if len(begins) == 2:
            return columns
        return columns.part(begins[place], begins[place + 1])


class RowsPart:
    """What rows hold of one topic; a frame of its own when it is asked for."""

    __slots__ = (
        *("_frame", "_place", "_rows", "base_offset", "end_offset", "events"),
        *("latest_ms", "low_id", "size"),
    )

    def __init__(
        self,
        rows: RowEvents,
        place: int,
        size: int,
        base_offset: int,
        events: int,
        latest_ms: int,
        low_id: int,
        frame: TailFrame | None = None,
    ) -> None:
        self._rows = rows
        self._place = place
        self._frame = frame
        self.base_offset = base_offset
        self.end_offset = base_offset + events
        self.events = events
        self.latest_ms = latest_ms
        self.low_id = low_id
        """What the id of the first event has below its time."""
        self.size = size

    @property
    def body_bytes(self) -> int:
        """What the events take in a frame, about."""
        if self._frame is not None:
            return self._frame.size - HEADER_BYTES
        return self.size - EVENT_BYTES * self.events

    def columns(self) -> Columns:
        """The events; not to be changed."""
        return self._rows.of(self._place)

    def place(self) -> tuple[Columns, int, int]:
        """Columns in which the events are, with others, and from where to where."""
        columns, begins = self._rows.by_topic()
        return columns, begins[self._place], begins[self._place + 1]

    @property
    def given(self) -> tuple[str, ...]:
        """The optional columns of the events, and of those that came with them."""
        return self._rows.given

    def alone(self) -> OwnPart:
        """The same events, which do not hold on to those that they came with."""
        size = self.size - EVENT_BYTES * self.events
        return OwnPart(self.columns(), self.base_offset, self.low_id, size, self._frame)

    def frame(self) -> TailFrame:
        if self._frame is None:
            self._frame = frame_at(self.columns(), self.base_offset, self.low_id)
        return self._frame


class OwnPart:
    """Events of one topic as columns; a frame when it is asked for."""

    __slots__ = ("_frame", "base_offset", "columns", "end_offset", "low_id", "size")

    def __init__(
        self,
        columns: Columns,
        base_offset: int,
        low_id: int,
        size: int,
        frame: TailFrame | None,
    ) -> None:
        self.columns = columns
        self.base_offset = base_offset
        self.end_offset = base_offset + len(columns)
        self.low_id = low_id
        self.size = size
        self._frame = frame

    def ids(self) -> list[str]:
        """Those that were given, and generated ones."""
        given, stamps = self.columns.ids, self.columns.timestamps
        if given is not None and None not in given:
            return [*cast("list[str]", given)]  # as just seen
        base = ids.id_base(stamps[0], self.low_id)
        made = ids.event_ids_at(base, range(len(stamps)), stamps)
        if given is None:
            return made
        return [one or other for one, other in zip(given, made, strict=True)]

    def frame(self) -> TailFrame:
        if self._frame is None:
            self._frame = frame_at(self.columns, self.base_offset, self.low_id)
        return self._frame


def joined(parts: Sequence[RowsPart]) -> Columns:
    """The events of neighbours, as columns of their own."""
    columns, given = Columns(), parts[0].given
    if any([part.given != given for part in parts]):
        for part in parts:
            columns.extend(part.columns())
        return columns
    places = [part.place() for part in parts]
    for name in (*_ALWAYS, *given):
        lists = [getattr(mine, name)[lo:hi] for mine, lo, hi in places]
        setattr(columns, name, [*chain.from_iterable(lists)])
    return columns


def part_of(columns: Columns, base_offset: int, low_id: int) -> TailFrame | RowsPart:
    """All that one topic has got, whose frame is made here and now."""
    frame, count = frame_at(columns, base_offset, low_id), len(columns)
    if count >= SMALL_EVENTS or frame.size >= SMALL_BYTES:
        return frame
    # Its columns are kept as well: they are wanted when it is gathered with others.
    rows, latest_ms = RowEvents(columns, [0] * count), frame.latest_ms
    size = 2 * frame.size + EVENT_BYTES * count
    return RowsPart(rows, 0, size, base_offset, count, latest_ms, low_id, frame)


def frame_at(columns: Columns, base_offset: int, low_id: int) -> TailFrame:
    """The frame of events whose generated ids say their times."""
    stamps = columns.distinct_timestamps()
    columns.ids_by_time = len(stamps) > 1
    id_base = ids.id_base(stamps[0], low_id)
    return TailFrame.of(frame_of(columns, base_offset, id_base))


# The entry read back


def head_bytes(data: Buffer) -> int:
    """How much of an entry says what the topics have: all in front of the places."""
    return HEAD.size + TABLE_ENTRY.size * int(HEAD.unpack_from(data)[0])


def table_of(data: Buffer) -> list[tuple[int, int, int, int, bytes]]:
    """Id, base offset, events, latest time and id base of each topic of an entry."""
    table = memoryview(data)[HEAD.size : head_bytes(data)]
    return list(TABLE_ENTRY.iter_unpack(table))


def parts_of(data: Buffer) -> Iterator[tuple[int, RowsPart]]:
    """What each topic has, by its id; raises InvalidBatch for what is no such entry."""
    view = memoryview(data)
    start = head_bytes(view) if len(view) >= HEAD.size else len(view)
    table = table_of(view) if start < len(view) else []
    length = 4 * sum(row[2] for row in table)
    end = start + length + -length % 8
    checksum = crc32c(view[HEAD.size : end], crc32c(view[: _COUNT.size]))
    if end >= len(view) or HEAD.unpack_from(view)[1] != checksum:
        raise InvalidBatch("rows", f"{len(view)} bytes that are no rows", "whole ones")
    # A copy: the block it lies in is larger than what memory may hold on to.
    frame = memoryview(bytes(view[end:]))
    columns = Batch.received("", frame).to_columns()
    rows = RowEvents(columns, view[start : start + length].cast("I").tolist())
    sizes = rows.sizes(columns.row_bytes())
    for place, (topic_id, base, count, latest_ms, low) in enumerate(table):
        low_id = int.from_bytes(low, "big")
        size = sizes[place]
        yield topic_id, RowsPart(rows, place, size, base, count, latest_ms, low_id)
