"""Looking for damage before a client reads it: segments verified newest first."""

from __future__ import annotations

from penstock.log.catalog import Catalog
from penstock.log.topic import Segment, TopicLog

_READ_BYTES = 1 << 20


class Scrub:
    """Goes through all segments, a bounded step at a time, then from the start."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._left: list[tuple[TopicLog, Segment]] = []
        self._position: int | None = None
        self._length = 0
        """Of the segment it is in: another one, if that was compacted meanwhile."""

    def step(self, max_bytes: int) -> bool:
        """Verify about ``max_bytes``; True when everything has been looked at."""
        if not self._left:
            self._left = self._newest_last()
        while self._left and max_bytes > 0:
            topic, segment = self._left[-1]
            known = self._catalog.by_id(topic.id) is topic
            if known and segment in topic.segments:
                max_bytes -= self._verify(topic, segment, max_bytes)
            else:
                self._position = None
            if self._position is None:
                self._left.pop()
        return not self._left

    def _newest_last(self) -> list[tuple[TopicLog, Segment]]:
        """All segments: the oldest of every topic first, the active ones last."""
        aged = [
            (-age, topic, segment)
            for topic in self._catalog
            for age, segment in enumerate(reversed(topic.segments))
        ]
        aged.sort(key=lambda one: one[0])
        return [(topic, segment) for _, topic, segment in aged]

    def _verify(self, topic: TopicLog, segment: Segment, max_bytes: int) -> int:
        """Go on in a segment; bytes done. The position is None when it is through."""
        done = 0
        if segment.sealed and segment.length != self._length:
            self._position = None
        self._length = segment.length
        for found in topic.frames_of(segment, self._position, _READ_BYTES):
            done += found.header.length
            if done >= max_bytes:
                self._position = found.position + found.header.length
                return done
        self._position = None
        return done
