"""Looking for damage before somebody reads it: segments verified newest first."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.log.catalog import Catalog


class Scrub:
    """Goes through all segments, a bounded step at a time, then from the start."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._walk: Iterator[int] | None = None

    def step(self, max_bytes: int) -> bool:
        """Verify about ``max_bytes``; True when everything has been looked at."""
        if self._walk is None:
            self._walk = self._frames()
        for length in self._walk:
            max_bytes -= length
            if max_bytes <= 0:
                return False
        self._walk = None
        return True

    def _frames(self) -> Iterator[int]:
        segments = [
            (topic, segment) for topic in self._catalog for segment in topic.segments
        ]
        for topic, segment in reversed(segments):
            if segment in topic.segments:
                for found in topic.frames_of(segment, read_bytes=1 << 20):
                    yield found.header.length
