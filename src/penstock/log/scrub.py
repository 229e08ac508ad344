"""Looking for damage before a client reads it: segments verified newest first.

A step is bounded in bytes, and a segment counts for some at least: what many small
topics have is many files.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.log.catalog import Catalog
from penstock.log.topic import Segment, TopicLog

_READ_BYTES = 1 << 20
# To open a segment and read its header takes as long as to verify so much of it.
SEGMENT_BYTES = 1 << 16


class Scrub:
    """Goes through all segments, a bounded step at a time, then from the start."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._left: Iterator[tuple[TopicLog, Segment]] = iter(())
        self._now: tuple[TopicLog, Segment] | None = None
        """Where it is; None: a new round begins."""
        self._position: int | None = None
        self._length = 0
        """Of the segment it is in: another one, if that was compacted meanwhile."""

    def step(self, max_bytes: int) -> bool:
        """Verify about ``max_bytes``; True when everything has been looked at."""
        if self._now is None:
            self._left = self._newest_first()
            self._now = next(self._left, None)
        while self._now is not None and max_bytes > 0:
            topic, segment = self._now
            known = self._catalog.by_id(topic.id) is topic
            if known and segment in topic.segments:
                max_bytes -= max(self._verify(topic, segment, max_bytes), SEGMENT_BYTES)
            else:
                self._position = None
            if self._position is None:
                topic.rest()
                self._now = next(self._left, None)
        return self._now is None

    def _newest_first(self) -> Iterator[tuple[TopicLog, Segment]]:
        """All segments: the active one of every topic first, the oldest ones last."""
        topics, age = list(self._catalog), 0
        while topics := [one for one in topics if one.segment_count > age]:
            for topic in topics:
                if topic.segment_count > age:
                    yield topic, topic.segments[-1 - age]
            age += 1

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
