"""The end of a topic in memory: what is confirmed, written out or not yet.

It consists of *parts*: frames, or what becomes one when it is asked for. The first
``written`` parts are in a segment too and may be dropped at any time; the others live
only here and in the journal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from penstock.files import Buffer
from penstock.log.frame import HEADER_BYTES, FrameHeader, peek


class TailFrame(NamedTuple):
    """A verified frame: its header, and the bytes behind it."""

    header: FrameHeader
    body: memoryview

    @classmethod
    def of(cls, frame: Buffer) -> Self:
        """The whole of a frame that is known to be intact."""
        header = peek(frame, 0)
        if header is None:
            raise ValueError("not a batch frame")
        return cls(header, memoryview(frame)[HEADER_BYTES : header.length])

    @property
    def base_offset(self) -> int:
        return self.header.base_offset

    @property
    def end_offset(self) -> int:
        return self.header.end_offset

    @property
    def events(self) -> int:
        return self.header.events

    @property
    def latest_ms(self) -> int:
        return self.header.max_timestamp_ms

    @property
    def size(self) -> int:
        return self.header.length

    def frame(self) -> TailFrame:
        return self


class TailPart(Protocol):
    """Events that follow one another: a frame, or what becomes one."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def latest_ms(self) -> int:
        """Its latest timestamp."""

    @property
    def size(self) -> int:
        """What it takes in memory, about."""

    def frame(self) -> TailFrame: ...


class Tail:
    __slots__ = ("_bases", "_parts", "_written")

    def __init__(self) -> None:
        self._parts: list[TailPart] = []
        self._bases: list[int] = []
        self._written = 0

    @property
    def start_offset(self) -> int | None:
        """The first offset in memory; None if there is none."""
        return self._bases[0] if self._bases else None

    @property
    def unwritten_bytes(self) -> int:
        return sum(part.size for part in self._parts[self._written :])

    @property
    def empty(self) -> bool:
        return not self._parts

    @property
    def all_written(self) -> bool:
        return self._written == len(self._parts)

    def append(self, part: TailPart) -> None:
        self._parts.append(part)
        self._bases.append(part.base_offset)

    def since(
        self, offset: int, max_bytes: int, *, at_least_one: bool
    ) -> list[TailFrame]:
        """Frames from the one that holds ``offset`` on, within the limit."""
        at = max(bisect_right(self._bases, offset) - 1, 0)
        taken: list[TailFrame] = []
        size = 0
        while at < len(self._parts):
            part = self._parts[at]
            at += 1
            if part.end_offset <= offset:
                continue
            frame = part.frame()
            size += frame.size
            if size > max_bytes and (taken or not at_least_one):
                break
            taken.append(frame)
        return taken

    def unwritten(self) -> list[TailPart]:
        return self._parts[self._written :]

    def mark_written(self, count: int, frames: Sequence[TailFrame]) -> None:
        """The first ``count`` that were not written are, as these frames."""
        lo, hi = self._written, self._written + count
        self._parts[lo:hi] = frames
        self._bases[lo:hi] = [frame.base_offset for frame in frames]
        self._written += len(frames)

    def drop_written(self, count: int) -> int:
        """Forget up to ``count`` of the oldest written frames; bytes set free."""
        count = min(count, self._written)
        freed = sum(part.size for part in self._parts[:count])
        del self._parts[:count]
        del self._bases[:count]
        self._written -= count
        return freed

    def cut(self, offset: int) -> tuple[int, int]:
        """Forget the parts that begin at ``offset`` or behind it.

        Returns bytes that were written out, and bytes that were not.
        """
        keep = bisect_left(self._bases, offset)
        sizes = [part.size for part in self._parts]
        border = max(keep, self._written)
        written, unwritten = sizes[keep:border], sizes[border:]
        del self._parts[keep:]
        del self._bases[keep:]
        self._written = min(self._written, keep)
        return sum(written), sum(unwritten)

    def clear(self) -> tuple[int, int]:
        """Forget everything, with the same answer."""
        return self.cut(0)


# Of a topic that has nothing in memory; nothing is ever appended to it.
NO_TAIL = Tail()
