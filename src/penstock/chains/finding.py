"""Following the index: from an id to the events that have it, or were caused by it.

A row is a hint. The event is read and compared, because keys clash, and because
retention, compaction, truncation and deletion take events without telling the index.

What is found comes in steps: ``None`` is a place to pause, where the effort of the
meter may be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.chains.filling import Filler
from penstock.chains.keys import batch_key, text_key, uuid_value
from penstock.chains.store import ChainIndex
from penstock.log import Batch, BrokerLog, Column, StoredTopic
from penstock.model import ids

# Rows asked for at once.
PAGE = 200
# Batches kept from one event to the next, and what they may take together.
MAX_FRAMES = 32
MAX_FRAME_BYTES = 8 << 20

# Effort, in about microseconds.
_PER_QUERY = 15
_PER_ROW = 2
_PER_EVENT = 20
_PER_READ = 30
_BYTES_PER_UNIT = 1000

ChainPlace = tuple[int, int]
"""Id of a topic, and an offset."""


class Meter:
    """What may still be spent in this step."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = 0


class Hit(NamedTuple):
    topic: StoredTopic
    event: Batch
    """A view of one event."""

    @property
    def place(self) -> ChainPlace:
        return self.topic.id, self.event.base_offset

    @property
    def id(self) -> str:
        return self.event.ids()[0]

    @property
    def parent(self) -> str | None:
        return self.event.parents()[0]


Hits = Iterator[Hit | None]


class Finder:
    def __init__(
        self, log: BrokerLog, store: ChainIndex, filler: Filler, meter: Meter
    ) -> None:
        self._log = log
        self._store = store
        self._filler = filler
        self._meter = meter
        self._frames: list[tuple[int, Batch]] = []

    def forget(self) -> None:
        """Events may have gone since the last step."""
        self._frames.clear()

    def at(self, topic: StoredTopic, offset: int) -> Hit | None:
        """The event at an offset, if there is one."""
        if not topic.start_offset <= offset < topic.end_offset:
            return None
        self._meter.left -= _PER_EVENT
        frame = self._frame(topic, offset)
        if frame is None:
            return None
        index = frame.index_of(offset)
        if index >= frame.header.events or frame.offset_of(index) != offset:
            return None
        event = Batch(topic.name, frame.body, frame.header, index, index + 1)
        return Hit(topic, event)

    def children(self, text: str) -> Hits:
        """The events whose parent is this id."""
        for row in self._rows("parents", text_key(text)):
            hit = None if row is None else self.at(*row)
            yield hit if hit is not None and hit.parent == text else None

    def with_id(self, text: str) -> Hits:
        """The events that have this id, given or generated."""
        seen: set[ChainPlace] = set()
        for row in self._rows("ids", text_key(text)):
            hit = None if row is None else self.at(*row)
            if hit is not None and hit.id == text:
                seen.add(hit.place)
                yield hit
            else:
                yield None
        value = uuid_value(text)
        if value is None:
            return
        for row in self._rows("batches", batch_key(value)):
            hit = None if row is None else self._generated(*row, text, value)
            # Batches that were gathered have rows of before, which lead to the same.
            if hit is None or hit.id != text or hit.place in seen:
                yield None
                continue
            seen.add(hit.place)
            yield hit

    def _generated(
        self, topic: StoredTopic, base: int, text: str, value: int
    ) -> Hit | None:
        """The event at an offset or behind it that was given this id, in that batch.

        The batch may have been gathered with its neighbours since it was indexed.
        """
        frame = self._frame(topic, max(base, topic.start_offset))
        if frame is None:
            return None
        header = frame.header
        if Column.ID in frame.columns():
            mine = frame.ids()
            at = mine.index(text) if text in mine else None
            return None if at is None else self.at(topic, frame.offset_of(at))
        offset = header.base_offset + ids.distance(header.id_base, value)
        return self.at(topic, offset) if base <= offset < header.end_offset else None

    def _rows(self, table: str, key: int) -> Iterator[tuple[StoredTopic, int] | None]:
        after = (0, -1)
        while True:
            rows = self._store.find(table, key, after, PAGE)
            self._meter.left -= _PER_QUERY + _PER_ROW * len(rows)
            for run, offset in rows:
                topic = self._log.topic_by_id(self._filler.topics.get(run, 0))
                if topic is not None:
                    yield topic, offset
            if len(rows) < PAGE:
                return
            after = rows[-1]
            yield None

    def _frame(self, topic: StoredTopic, offset: int) -> Batch | None:
        """The batch that covers an offset."""
        for topic_id, frame in self._frames:
            header = frame.header
            if (
                topic_id == topic.id
                and header.base_offset <= offset < header.end_offset
            ):
                return frame
        found = topic.whole_batches(offset, 1)
        self._meter.left -= _PER_READ
        if not found:
            return None
        frame = found[0]
        self._meter.left -= frame.header.length // _BYTES_PER_UNIT
        if not frame.header.base_offset <= offset < frame.header.end_offset:
            return None
        self._keep(topic.id, frame)
        return frame

    def _keep(self, topic_id: int, frame: Batch) -> None:
        self._frames.insert(0, (topic_id, frame))
        size = sum(one.header.length for _, one in self._frames)
        while len(self._frames) > 1 and (
            len(self._frames) > MAX_FRAMES or size > MAX_FRAME_BYTES
        ):
            _, gone = self._frames.pop()
            size -= gone.header.length
