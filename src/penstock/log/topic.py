"""One topic: its segments on disk, its tail in memory, and reading across both.

Offsets of a topic, in order::

    start_offset ≤ … segments … ≤ … tail … ≤ end_offset ≤ next_offset

Readers see up to ``end_offset``: what a completed commit holds. ``next_offset`` is
what the next event gets; between the two lies what waits for its commit.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from penstock.errors import CorruptRecord, OffsetOutOfRange
from penstock.files import FileSystem, read_file
from penstock.log import segment as segment_format
from penstock.log.batch import Batch
from penstock.log.damage import Damage
from penstock.log.frame import FrameHeader, padding
from penstock.log.index import INTERVAL_BYTES, Index
from penstock.log.layout import (
    SEGMENT_SUFFIX,
    Layout,
    index_file,
    numbered,
    segment_file,
)
from penstock.log.options import TopicOptions
from penstock.log.segment import (
    MAX_OFFSET,
    UNREADABLE,
    FoundFrame,
    GoOn,
    build_index,
    frames,
    ignore_damage,
)
from penstock.log.segment_cache import SegmentCache
from penstock.log.tail import NO_TAIL, Tail

# One block read from an old segment; bounds what a reader costs in memory.
MIN_READ_BYTES = 1 << 16
MAX_READ_BYTES = 1 << 20

ReportDamage = Callable[[Damage], object]


@dataclass(slots=True, kw_only=True)
class Segment:
    """One segment file: ``length`` bytes of it count."""

    base_offset: int
    end_offset: int
    path: str
    length: int
    sealed: bool = False
    """The last segment too, if its file was lost: it must not grow."""
    created_ms: int | None = None
    max_timestamp_ms: int | None = None
    index: Index | None = None
    """Of the active segment, and of others until it is stored; the cache keeps those
    of sealed ones."""
    gathered: bool = False
    """Whether it is known that its frames are large, or cannot become larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicHome:
    """What the topics of a data directory share."""

    files: FileSystem
    layout: Layout
    segment_cache: SegmentCache
    report: ReportDamage


class TopicLog:
    """A topic that is quiet is these few fields: see ``rest``."""

    __slots__ = (
        *("_active_base", "_active_end", "_active_length", "_home", "_segments"),
        *("_tail", "committed", "compacted_to", "end_offset", "going", "id", "looked"),
        *("low_id", "name", "next_offset", "options", "start_offset"),
    )

    def __init__(
        self, home: TopicHome, *, topic_id: int, name: str, options: TopicOptions
    ) -> None:
        self._home = home
        self.id = topic_id
        self.name = name
        self.options = options
        self._segments: list[Segment] | None = None
        """None: the one that ``_active_base`` tells of, or none."""
        self._active_base: int | None = None
        self._active_end = 0
        self._active_length = 0
        self.looked = False
        """Whether its folder holds no more than is known of it: see store.WriteOut."""
        self._tail: Tail | None = None
        """None: there is nothing in memory."""
        self.start_offset = 0
        self.end_offset = 0
        self.next_offset = 0
        self.low_id: int | None = None
        """What ids that are generated have below their time, less the offset."""
        self.committed = True
        """False until the group that creates the topic is; no checkpoint has it."""
        self.going = False
        """Whether a group that is not committed yet deletes it: it takes no events."""
        self.compacted_to: int | None = None
        """Where it ended when it was compacted last, as far as that is known."""

    @property
    def directory(self) -> str:
        return self._home.layout.topic_directory(self.name, self.id)

    @property
    def header_length(self) -> int:
        size = len(self.name.encode())
        return segment_format.HEADER.size + size + len(padding(size))

    @property
    def tail(self) -> Tail:
        if self._tail is None:
            self._tail = Tail()
        return self._tail

    @property
    def segments(self) -> list[Segment]:
        if self._segments is None:
            self._segments = self._lone_segment()
        return self._segments

    @segments.setter
    def segments(self, segments: list[Segment]) -> None:
        self._segments = segments

    @property
    def active(self) -> Segment | None:
        return self.segments[-1] if self.segments else None

    @property
    def place(self) -> tuple[int | None, int | None, int]:
        """Base offsets of the first and the active segment, and the latter's length."""
        if self._segments is None:
            return self._active_base, self._active_base, self._active_length
        if not self._segments:
            return None, None, 0
        active = self._segments[-1]
        return self._segments[0].base_offset, active.base_offset, active.length

    @property
    def segment_count(self) -> int:
        if self._segments is not None:
            return len(self._segments)
        return 0 if self._active_base is None else 1

    @property
    def written_offset(self) -> int:
        """Behind the last event that is in a segment."""
        if self._segments is None:
            return self.start_offset if self._active_base is None else self._active_end
        return self._segments[-1].end_offset if self._segments else self.start_offset

    @property
    def bytes(self) -> int:
        if self._segments is None:
            return self._active_length
        return sum(segment.length for segment in self._segments)

    @property
    def unwritten_bytes(self) -> int:
        return 0 if self._tail is None else self._tail.unwritten_bytes

    def attach(
        self,
        active_base: int | None,
        active_length: int,
        end: int,
        first_base: int | None = None,
    ) -> None:
        """Take up the segment files as a checkpoint knew them.

        ``first_base``: of the oldest segment, if that is known; the folder of a topic
        that has one segment at most is not looked into.
        """
        self.end_offset = self.next_offset = self._active_end = end
        if active_base is None or active_base == first_base:
            self._active_base, self._active_length = active_base, active_length
            return
        present = self._segment_bases()
        bases = sorted({active_base, *(base for base in present if base < active_base)})
        self._segments = []
        for base, following in pairwise([*bases, end]):
            path = segment_file(self.directory, base)
            active = base == active_base
            self._segments.append(
                Segment(
                    base_offset=base,
                    end_offset=following,
                    path=path,
                    length=active_length if active else self._size(path),
                    sealed=not active or active_base not in present,
                )
            )

    def rest(self) -> None:
        """Keep no more in memory than a quiet topic needs, if it is one.

        What is forgotten of its segment is read from it again: so it must be small, and
        retention must not need it.
        """
        if self._tail is not None:
            if not self._tail.empty:
                return
            self._tail = None
        segments, options = self._segments, self.options
        if segments is None or len(segments) > 1:
            return
        if options.retention_age_s is not None or options.segment_age_s is not None:
            return
        if not segments:
            self._segments, self._active_base, self._active_length = None, None, 0
            return
        active = segments[0]
        if active.sealed or active.length > INTERVAL_BYTES:
            return
        self._segments, self._active_base = None, active.base_offset
        self._active_end, self._active_length = active.end_offset, active.length

    def _lone_segment(self) -> list[Segment]:
        if self._active_base is None:
            return []
        return [
            Segment(
                base_offset=self._active_base,
                end_offset=self._active_end,
                path=segment_file(self.directory, self._active_base),
                length=self._active_length,
            )
        ]

    def _segment_bases(self) -> list[int]:
        if not self._home.files.exists(self.directory):
            return []
        return numbered(self._home.files.list(self.directory), SEGMENT_SUFFIX)

    def read(self, offset: int, max_bytes: int) -> list[Batch]:
        """Batches from ``offset`` on, about ``max_bytes``, at least one if there is.

        Raises OffsetOutOfRange outside start_offset..end_offset.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise OffsetOutOfRange(
                self.name, offset, self.start_offset, self.end_offset
            )
        while batches := self.whole_batches(offset, max_bytes):
            end = batches[-1].header.end_offset
            batches[0] = batches[0].since(offset)
            # A frame that was compacted may cover ``offset`` and hold nothing there.
            if found := [batch for batch in batches if len(batch)]:
                return found
            offset = end
        return []

    def whole_batches(
        self, offset: int, max_bytes: int, end: int = MAX_OFFSET
    ) -> list[Batch]:
        """Whole batches from the one that covers ``offset`` on.

        About ``max_bytes``, at least one, and none that begins at ``end`` or behind.
        """
        batches: list[Batch] = []
        quiet = self._segments is None
        tail = self._tail or NO_TAIL
        tail_start = tail.start_offset
        in_segments = offset < self.written_offset
        if in_segments and (tail_start is None or offset < tail_start):
            batches = self._read_segments(offset, max_bytes, end)
        following = batches[-1].header.end_offset if batches else offset
        left = max_bytes - sum(batch.header.length for batch in batches)
        if not batches or following >= self.written_offset:
            taken = tail.since(following, left, at_least_one=not batches)
            batches += [
                Batch.whole(self.name, header, body)
                for header, body in taken
                if header.base_offset < end
            ]
        if quiet:
            self.rest()
        return batches

    def offset_at(self, timestamp_ms: int) -> int:
        """The first offset whose timestamp is at least this; the end if none is."""
        for segment in self.segments:
            if self.max_timestamp_of(segment) >= timestamp_ms:
                start = self.index_of(segment).position_at(timestamp_ms)
                found = self._first_at(self.frames_of(segment, start), timestamp_ms)
                if found is not None:
                    return found
        for part in (self._tail or NO_TAIL).unwritten():
            if part.latest_ms >= timestamp_ms:
                found = self._offset_in(*part.frame(), timestamp_ms)
                if found is not None:
                    return found
        return self.end_offset

    def frames_of(
        self,
        segment: Segment,
        position: int | None = None,
        read_bytes: int = 0,
        go_on: GoOn | None = None,
    ) -> Iterator[FoundFrame]:
        """Verified frames of a segment; damage is reported and left out."""
        start = self.header_length if position is None else position
        if position is None:
            self._check_header(segment)
        last = [segment.base_offset]

        def on_damage(at: int, length: int, reason: str, behind: int) -> None:
            self._home.report(
                Damage(
                    file=self._home.layout.relative(segment.path),
                    position=at,
                    length=length,
                    reason=reason,
                    topic=self.name,
                    first_offset=last[0],
                    end_offset=segment.end_offset if behind < 0 else behind,
                )
            )

        try:
            handle = self._home.segment_cache.handle(segment.path)
        except FileNotFoundError:
            if segment.end_offset > self.start_offset:
                on_damage(0, segment.length, "the file is missing", -1)
            return
        for found in frames(
            self._home.files,
            handle,
            position=start,
            end=segment.length,
            on_damage=on_damage,
            read_bytes=min(max(read_bytes, MIN_READ_BYTES), MAX_READ_BYTES),
            go_on=go_on,
            end_offset=segment.end_offset,
        ):
            last[0] = found.header.end_offset
            yield found

    def index_of(self, segment: Segment) -> Index:
        """The index of a segment: as known, as stored, or made again."""
        if segment is self.active:
            if segment.index is None:
                self._check_header(segment)
                segment.index = self._build_index(segment)
            return segment.index
        return self._home.segment_cache.index(
            segment.path, lambda: self._load_index(segment)
        )

    def stored_index(self, segment: Segment) -> Index | None:
        """The index file of a sealed segment if it is there, whole and fitting."""
        path = index_file(self.directory, segment.base_offset)
        if not self._home.files.exists(path):
            return None
        index = Index.decode(read_file(self._home.files, path))
        return index if index is not None and index.length == segment.length else None

    def written_frame(self, offset: int) -> Batch | None:
        """The frame in a segment that covers ``offset``, or the next one behind it.

        Raises OSError if it cannot be read: then it is not known.
        """
        for segment in self.segments:
            if segment.end_offset <= offset:
                continue
            for found in self._readable_frames(segment):
                if found.header.end_offset > offset:
                    return Batch.whole(self.name, found.header, found.body)
        return None

    def cut_position(self, segment: Segment, offset: int) -> int:
        """Where in a segment the last frame in front of ``offset`` ends.

        A file that was cut there already is no damage. Raises OSError if it cannot
        be read: then it is not known, and nothing must be cut.
        """
        end = self.header_length
        for found in self._readable_frames(segment):
            if found.header.base_offset >= offset:
                break
            end = found.position + found.header.length
        return end

    def _readable_frames(self, segment: Segment) -> Iterator[FoundFrame]:
        """All good frames of a segment; raises OSError if it cannot be read."""
        if not self._home.files.exists(segment.path):
            return iter(())
        return frames(
            self._home.files,
            self._home.segment_cache.handle(segment.path),
            position=self.header_length,
            end=segment.length,
            on_damage=_raise_unreadable,
        )

    def _check_header(self, segment: Segment) -> None:
        """Report a damaged header; the frames behind it can be read without."""
        try:
            handle = self._home.segment_cache.handle(segment.path)
            data = self._home.files.read(handle, self.header_length, 0)
            segment_format.decode_header(data, segment.path)
        except CorruptRecord as error:
            file = self._home.layout.relative(segment.path)
            self._home.report(
                Damage(file=file, position=0, length=len(data), reason=error.reason)
            )
        except OSError:
            return  # the reader of the frames meets it too

    def _load_index(self, segment: Segment) -> Index:
        self._check_header(segment)
        known = segment.index or self.stored_index(segment)
        return known or self._build_index(segment)

    def _build_index(self, segment: Segment) -> Index:
        try:
            handle = self._home.segment_cache.handle(segment.path)
        except FileNotFoundError:
            return Index(length=segment.length, end_offset=segment.end_offset)
        return build_index(
            self._home.files,
            handle,
            start=self.header_length,
            base_offset=segment.base_offset,
            end=segment.length,
            on_damage=ignore_damage,
        )

    def _read_segments(self, offset: int, max_bytes: int, end: int) -> list[Batch]:
        bases = [segment.base_offset for segment in self.segments]
        first = max(bisect_right(bases, offset) - 1, 0)
        batches: list[Batch] = []
        left = max_bytes

        def within_limit(header: FrameHeader) -> bool:
            if header.end_offset <= offset:
                return True
            return header.base_offset < end and (not batches or header.length <= left)

        for segment in self.segments[first:]:
            if segment.base_offset >= end:
                break
            behind = segment.base_offset
            position = self._position_of(segment, offset)
            for found in self.frames_of(segment, position, max_bytes, within_limit):
                header = found.header
                behind = header.end_offset
                if behind > offset:
                    left -= header.length
                    batch = Batch.whole(self.name, header, found.body)
                    batches.append(batch)
            if batches and (left <= 0 or behind < segment.end_offset):
                break
        return batches

    def _position_of(self, segment: Segment, offset: int) -> int | None:
        """Where to start reading a segment for ``offset``; None: at the beginning."""
        known = segment.index is not None or segment is not self.active
        if not known and segment.length <= INTERVAL_BYTES:
            return None  # read it once, rather than once more for its index
        return self.index_of(segment).position_of(offset)

    def max_timestamp_of(self, segment: Segment) -> int:
        if segment is self.active:
            return self.index_of(segment).max_timestamp_ms
        if segment.max_timestamp_ms is None:
            segment.max_timestamp_ms = self.index_of(segment).max_timestamp_ms
        return segment.max_timestamp_ms

    def _first_at(self, found: Iterator[FoundFrame], timestamp_ms: int) -> int | None:
        for one in found:
            offset = self._offset_in(one.header, one.body, timestamp_ms)
            if offset is not None:
                return offset
        return None

    def _offset_in(
        self, header: FrameHeader, body: memoryview, timestamp_ms: int
    ) -> int | None:
        """The first offset of a frame that still counts and has this time or later."""
        if header.max_timestamp_ms < timestamp_ms:
            return None
        batch = Batch.whole(self.name, header, body)
        batch = batch.since(self.start_offset)
        for index, timestamp in enumerate(batch.timestamps(), batch.lo):
            if timestamp >= timestamp_ms:
                return batch.offset_of(index)
        return None

    def _size(self, path: str) -> int:
        handle = self._home.files.open(path)
        try:
            return self._home.files.size(handle)
        finally:
            self._home.files.close(handle)


def _raise_unreadable(position: int, length: int, reason: str, behind: int) -> None:
    if reason.startswith(UNREADABLE):
        raise OSError(errno.EIO, reason)
