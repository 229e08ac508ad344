"""Which sealed segments have frames so small that they are worth gathering.

Their headers say it: of a segment of large frames that is one small read each. What was
looked at once is not looked at again before the next start.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from math import inf

from penstock.errors import PenstockError, WriteFailed
from penstock.files import FileSystem
from penstock.log.frame import HEADER_BYTES, TABLE_ENTRY, Column, peek
from penstock.log.gather import most_bytes, runs
from penstock.log.tail import TailFrame
from penstock.log.topic import Segment, TopicLog

# A segment is rewritten where gathering leaves one frame of so many, and it has at
# least so many more than that: what was published by hundreds is let alone.
GAIN = 8
FEWER = 16
# So many frames of a segment say what it is like: there may be a million of them.
LOOKED_AT = 1 << 12
# Read at a time: many small frames, and little where they are large.
READ_BYTES = 1 << 12
# A header, and the table of all columns that this version knows.
_LOOK_BYTES = HEADER_BYTES + len(Column) * TABLE_ENTRY.size


class FrameSizes:
    """How many frames there are, and how many there would be if they were gathered."""

    def __init__(self) -> None:
        self.before = self.after = 0

    def add(
        self, frames: Iterable[TailFrame], max_bytes: int, most: float = inf
    ) -> None:
        """Count them, up to about ``most``."""
        for run, _ in runs(frames, max_bytes):
            self.before += len(run)
            self.after += 1
            if self.before >= most:
                return

    @property
    def small(self) -> bool:
        fewer = self.before - self.after
        return fewer >= FEWER and self.after * GAIN <= self.before


class LookAtFrames:
    """Looks at the headers of sealed segments; run in any thread."""

    def __init__(
        self, files: FileSystem, segments: Sequence[tuple[TopicLog, Segment]]
    ) -> None:
        self.error: WriteFailed | None = None
        self.small: list[tuple[TopicLog, Segment]] = []
        """Those that are worth gathering."""
        self._files = files
        self._segments = segments

    def run(self) -> None:
        for topic, segment in self._segments:
            try:
                if self._is_small(topic, segment):
                    self.small.append((topic, segment))
            except (OSError, struct.error, PenstockError):
                continue  # gone by now, or damaged: its reader meets that too
            except Exception as error:
                # A mistake of ours: the thread has other work to do.
                self.error = WriteFailed(segment.path, "reading", repr(error))
                return

    def _is_small(self, topic: TopicLog, segment: Segment) -> bool:
        sizes = FrameSizes()
        handle = self._files.open(segment.path)
        try:
            frames = self._frames(handle, topic.header_length, segment.length)
            sizes.add(frames, most_bytes(topic.options.segment_bytes), LOOKED_AT)
        finally:
            self._files.close(handle)
        return sizes.small

    def _frames(self, handle: int, position: int, end: int) -> Iterator[TailFrame]:
        """Headers, each with the beginning of its body; up to damage."""
        block, base = memoryview(b""), position
        while position < end:
            at = position - base
            if at + _LOOK_BYTES > len(block):
                block = memoryview(self._files.read(handle, READ_BYTES, position))
                base, at = position, 0
            header = peek(block, at)
            if header is None:
                return
            yield TailFrame(header, block[at + HEADER_BYTES : at + header.length])
            position += header.length
