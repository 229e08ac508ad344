"""The priority index of every topic that needs one.

Crash promise: rebuilt. Checkpoints carry it so that a start reads only what came
after; without one the topics are read from their beginning.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Set

import msgspec

from penstock.delivery.kept import Kept
from penstock.delivery.levels import Levels, has_priorities
from penstock.delivery.pages import Pages
from penstock.errors import OffsetOutOfRange
from penstock.log import Batch, BrokerLog


class LeveledTopic(msgspec.Struct, array_like=True, frozen=True):
    """How far a topic was looked at, and its index if it has one."""

    topic_id: int
    end: int
    first: int = -1
    blocks: dict[int, bytes] = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, LeveledTopic]).decode


class LevelBook(Kept):
    """Owner of a snapshot, without records."""

    kind = 260

    def __init__(self) -> None:
        self._indexes: dict[str, Levels] = {}
        self._restored: dict[str, LeveledTopic] = {}
        self._read: Callable[[str, Batch], object]
        self._log: BrokerLog | None = None
        self._pages: Pages | None = None

    def wire(
        self,
        log: BrokerLog,
        pages: Pages,
        read: Callable[[str, Batch], object] = lambda topic, batch: None,
    ) -> None:
        """Take up the log once it is open, and read what is new in it.

        ``read`` is called with all that is read: others keep indexes too.
        """
        self._log, self._pages, self._read = log, pages, read
        for topic in log.each_topic():
            name = topic.name
            row = self._restored.get(name, LeveledTopic(topic.id, 0))
            if row.topic_id != topic.id:
                row = LeveledTopic(topic.id, 0)  # another topic of that name
            if row.first >= 0:
                index = self._indexes[name] = Levels(name, pages, row.first)
                index.end = row.end
                index.blocks = {k: array("Q", v) for k, v in row.blocks.items()}
            self._catch_up(name, row.end)
        self._restored = {}

    def get(self, topic: str) -> Levels | None:
        return self._indexes.get(topic)

    def committed(self, topic: str, batch: Batch) -> None:
        """Take up a batch that was committed."""
        index = self._indexes.get(topic)
        if index is None:
            if not has_priorities(batch):
                return
            assert self._pages is not None, "events come after wire"
            # A start may look at the end of a frame that begins before.
            index = Levels(topic, self._pages, batch.base_offset)
            self._indexes[topic] = index
        index.add(batch)

    def followed(self, topics: Set[str]) -> Set[str]:
        return self._indexes.keys() & topics

    def forget(self, topic: str) -> None:
        self._indexes.pop(topic, None)

    def _catch_up(self, name: str, offset: int) -> None:
        assert self._log is not None, "called by wire"
        offset = max(offset, self._log.topic(name).start_offset)
        try:
            while batches := self._log.read(name, offset):
                for batch in batches:
                    self.committed(name, batch)
                    self._read(name, batch)
                offset = batches[-1].end_offset
        except OffsetOutOfRange:
            # The topic was cut behind the checkpoint: look at all of it.
            self._indexes.pop(name, None)
            self._catch_up(name, 0)

    # The journal's side

    def snapshot(self) -> bytes:
        assert self._log is not None, "checkpoints come after wire"
        rows = {}
        for topic in self._log.each_topic():
            index = self._indexes.get(topic.name)
            if index is None:
                rows[topic.name] = LeveledTopic(topic.id, topic.end_offset)
            else:
                blocks = {k: v.tobytes() for k, v in index.blocks.items()}
                rows[topic.name] = LeveledTopic(
                    topic.id, index.end, index.first, blocks
                )
        return _encode(rows)

    def restore(self, snapshot: bytes) -> None:
        self._restored = _decode(snapshot)
