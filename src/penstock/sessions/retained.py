"""Retained messages: the last one of each topic that asks for it, for who comes later.

They are events of ``$retained``, keyed by their topic, in the same group as the event
itself; compaction keeps the last of each. So a hundred thousand of them cost their
names and an offset each in memory, and are as durable as any event. One without a
payload takes the one before away: as an event of its topic too, unless that has a
schema, which an empty payload cannot fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.errors import LimitReached
from penstock.log import Appended, Batch, BrokerLog, Columns, TopicOptions
from penstock.sessions.filters import TopicTree

TOPIC = "$retained"
_OPTIONS = TopicOptions(compact=True, segment_bytes=8 << 20, segment_age_s=3600.0)


class Retained:
    """Knows which topics have one, and where it is in ``$retained``."""

    def __init__(self, log: BrokerLog, limit: int) -> None:
        self._log = log
        self._limit = limit
        self._offsets: dict[str, int] = {}
        self._names = TopicTree()
        if log.has_topic(TOPIC):
            topic = log.topic(TOPIC)
            offset = topic.start_offset
            while batches := log.read(TOPIC, offset):
                for batch in batches:
                    self.add(batch)
                offset = batches[-1].end_offset

    def __len__(self) -> int:
        return len(self._offsets)

    def check(self, topic: str, payload: bytes) -> None:
        """Raises LimitReached if no message of this topic can be retained."""
        if payload and topic not in self._offsets and len(self) >= self._limit:
            raise LimitReached("retained messages", self._limit, "max_retained")

    def append(
        self,
        topic: str,
        events: Columns,
        *,
        relaxed: bool = False,
        create: TopicOptions | None = None,
    ) -> Appended:
        """Append events to a topic and retain the last; without a payload, none.

        In one group, which a crash keeps or loses whole. What is retained is synced.
        """
        last = events.pick([len(events) - 1])
        last.keys = [topic.encode()]
        made = {} if create is None else {topic: create}
        if not self._log.has_topic(TOPIC):
            if not last.payloads[0]:
                return self._log.append(topic, events, relaxed=relaxed, create=create)
            made[TOPIC] = _OPTIONS
        batches = {topic: events, TOPIC: last}
        return self._log.append_group(batches, create=made)[topic]

    def add(self, batch: Batch) -> None:
        """Take note of events that were committed."""
        if batch.topic != TOPIC:
            return
        rows = zip(batch.offsets(), batch.keys(), batch.payloads(), strict=True)
        for offset, key, payload in rows:
            assert key is not None, "every one has its topic"
            topic = key.decode()
            if payload:
                self._offsets[topic] = offset
                self._names.add(topic)
            elif self._offsets.pop(topic, None) is not None:
                self._names.remove(topic)

    @property
    def end(self) -> int:
        """Behind the last that was put."""
        if not self._log.has_topic(TOPIC):
            return 0
        return self._log.topic(TOPIC).next_offset

    def of(
        self,
        filter_: str,
        below: int,
        *,
        left_out: Callable[[str], bool] | None = None,
    ) -> Iterable[int]:
        """Where those are that a filter matches, of what was put in front of an end."""
        topics = self.topics(filter_)
        if left_out is not None:
            topics = [name for name in topics if not left_out(name)]
        found = map(self._offsets.__getitem__, topics)
        return sorted(offset for offset in found if offset < below)

    def topics(self, filter_: str) -> Iterable[str]:
        """Topics that have one, of those that a filter matches."""
        if filter_ == "#":  # all of them: none begins with $, see broker/names.py
            return self._offsets
        if "+" in filter_ or "#" in filter_:
            return self._names.match(filter_)
        return (filter_,) if filter_ in self._offsets else ()

    def offset_of(self, topic: str) -> int | None:
        """Where the message of a topic is; None if it has none."""
        return self._offsets.get(topic)

    def forget(self, topic: str) -> None:
        """Retain nothing of a topic any more; it gets no event for that."""
        if self._log.has_topic(TOPIC):
            gone = Columns([b""], self._log.now_ms(), keys=[topic.encode()])
            self._log.append(TOPIC, gone)
