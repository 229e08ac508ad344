"""The end of a topic in memory: frames that are confirmed, written out or not yet.

The first ``written`` frames are in a segment too and may be dropped at any time;
the others live only here and in the journal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from penstock.log.frame import FrameHeader


class TailFrame(NamedTuple):
    """A verified frame: its header, and the bytes behind it."""

    header: FrameHeader
    body: memoryview


class Tail:
    __slots__ = ("_bases", "_frames", "_written")

    def __init__(self) -> None:
        self._frames: list[TailFrame] = []
        self._bases: list[int] = []
        self._written = 0

    @property
    def start_offset(self) -> int | None:
        """The first offset in memory; None if there is none."""
        return self._bases[0] if self._bases else None

    @property
    def unwritten_bytes(self) -> int:
        return sum(frame.header.length for frame in self._frames[self._written :])

    def append(self, frame: TailFrame) -> None:
        self._frames.append(frame)
        self._bases.append(frame.header.base_offset)

    def since(
        self, offset: int, max_bytes: int, *, at_least_one: bool
    ) -> list[TailFrame]:
        """Frames from the one that holds ``offset`` on, within the limit."""
        at = max(bisect_right(self._bases, offset) - 1, 0)
        taken: list[TailFrame] = []
        size = 0
        for frame in self._frames[at:]:
            if frame.header.end_offset <= offset:
                continue
            size += frame.header.length
            if size > max_bytes and (taken or not at_least_one):
                break
            taken.append(frame)
        return taken

    def unwritten(self) -> list[TailFrame]:
        return self._frames[self._written :]

    def mark_written(self, count: int) -> None:
        self._written += count

    def drop_written(self, count: int) -> int:
        """Forget up to ``count`` of the oldest written frames; bytes set free."""
        count = min(count, self._written)
        freed = sum(frame.header.length for frame in self._frames[:count])
        del self._frames[:count]
        del self._bases[:count]
        self._written -= count
        return freed

    def cut(self, offset: int) -> tuple[int, int]:
        """Forget the frames that begin at ``offset`` or behind it.

        Returns bytes that were written out, and bytes that were not.
        """
        keep = bisect_left(self._bases, offset)
        lengths = [frame.header.length for frame in self._frames]
        border = max(keep, self._written)
        written, unwritten = lengths[keep:border], lengths[border:]
        del self._frames[keep:]
        del self._bases[keep:]
        self._written = min(self._written, keep)
        return sum(written), sum(unwritten)

    def clear(self) -> tuple[int, int]:
        """Forget everything, with the same answer."""
        return self.cut(0)
