"""Compaction: sealed segments rewritten with the last event of each key only.

Offsets stay as they are, so a compacted topic has gaps. Events without a key have
nothing that could supersede them and stay. Small frames are gathered on the way
(gather.py): segments of versions that wrote an event a frame, or of topics that get
little, become as if all of it had come at once. Segments of topics that are not to be
compacted are rewritten for that alone, with all of their events.

A rewritten segment takes the place of the old one by a rename: after a crash one or the
other is there, and both are right.

One segment is read or rewritten at a time, in any thread: a sealed segment does not
change. The rewritten one is put into its place by the owner of the log, if the segment
is still there by then.

Precondition: every kept checkpoint knows these segments as sealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.errors import WriteFailed
from penstock.files import Buffer, FileSystem, remove_if_there, write_error
from penstock.log.batch import Batch
from penstock.log.columns import frame_of
from penstock.log.core import LogCore, UpkeepSteps
from penstock.log.frame import pack
from penstock.log.frame_sizes import FrameSizes
from penstock.log.gather import gathered, most_bytes
from penstock.log.index import Index
from penstock.log.interface import StoreWork
from penstock.log.layout import index_file
from penstock.log.segment import (
    FoundFrame,
    encode_header,
    frames,
    ignore_damage,
    read_header,
)
from penstock.log.tail import TailFrame
from penstock.log.topic import Segment, TopicLog

# Keys held in memory at a time; more are done in several rounds.
MAX_KEYS = 1_000_000
READ_BYTES = 1 << 20


def compaction(
    log: LogCore, topic: TopicLog, sealed: Sequence[Segment], max_keys: int = MAX_KEYS
) -> UpkeepSteps:
    """The steps of compacting segments. Raises WriteFailed, then nothing is lost."""
    freed = 0
    start: int | None = 0
    while start is not None:
        keys = LastOffsets(start, max_keys)
        for segment in sealed:
            yield from _done(log, topic, ReadKeys(log.files, topic, segment, keys))
            if keys.following is not None:
                break
        stop = sealed[-1].end_offset if keys.following is None else keys.following
        for segment in sealed:
            if segment.base_offset < stop:
                freed += yield from _rewritten(log, topic, segment, keys.last)
        start = keys.following
    return freed


def gathering(log: LogCore, topic: TopicLog, segment: Segment) -> UpkeepSteps:
    """The steps of gathering the small frames of a segment; all events stay."""
    freed = yield from _rewritten(log, topic, segment, {})
    segment.gathered = True
    return freed


def _rewritten(
    log: LogCore, topic: TopicLog, segment: Segment, last: dict[bytes, int]
) -> UpkeepSteps:
    """Have one segment rewritten if it is worth it; bytes set free."""
    work = Rewrite(log.files, topic, segment, last)
    yield from _done(log, topic, work)
    less = _put_in_place(log, topic, work)
    if less is None:
        return 0
    # Before the next one, so that what is gone stays gone.
    yield from _done(log, topic, SyncFolder(log.files, topic))
    if work.index is not None and work.whole:
        log.flusher.keep_index(topic, segment, work.index)
    return less


def _done(log: LogCore, topic: TopicLog, work: StoreWork) -> UpkeepSteps:
    """Have work done; if the topic is gone meanwhile, whatever became of it is."""
    yield work
    if work.error is not None and log.catalog.by_id(topic.id) is topic:
        raise work.error
    return 0


@dataclass(slots=True)
class LastOffsets:
    """The last offset of each key from ``start`` on, as many as there may be."""

    start: int
    most: int
    last: dict[bytes, int] = field(default_factory=dict)
    following: int | None = None
    """Where the next round begins, if there were more."""

    def add(self, batch: Batch) -> None:
        if batch.header.end_offset <= self.start:
            return
        part = batch.since(self.start)
        for offset, key in zip(part.offsets(), part.keys(), strict=True):
            if key is None:
                continue
            if key not in self.last and len(self.last) >= self.most:
                self.following = offset
                return
            self.last[key] = offset


class _SegmentWork:
    """Work on one sealed segment, with a handle of its own."""

    def __init__(self, files: FileSystem, topic: TopicLog, segment: Segment) -> None:
        self.segment = segment
        self.error: WriteFailed | None = None
        self._files = files
        self._name = topic.name
        self._topic_id = topic.id
        self._start = topic.header_length
        self._length = segment.length

    def run(self) -> None:
        try:
            handle = self._files.open(self.segment.path)
            try:
                self._work(handle)
            finally:
                self._files.close(handle)
        except OSError as error:
            self.error = write_error(self.segment.path, "compacting", error)
        except Exception as error:
            # Damage, or a mistake of ours: the thread has other work to do.
            self.error = WriteFailed(self.segment.path, "compacting", repr(error))
        if self.error is not None:
            self._give_up()

    def _work(self, handle: int) -> None:
        raise NotImplementedError

    def _give_up(self) -> None:
        """Leave nothing behind."""

    def _frames(self, handle: int) -> Iterator[FoundFrame]:
        """Good frames; damage is reported by other readers of the segment."""
        return frames(
            self._files,
            handle,
            position=self._start,
            end=self._length,
            on_damage=ignore_damage,
            read_bytes=READ_BYTES,
            end_offset=self.segment.end_offset,
        )

    def _batch(self, found: FoundFrame) -> Batch:
        return Batch.whole(self._name, found.header, found.body)


class ReadKeys(_SegmentWork):
    """Adds the keys of a segment to those of the segments before it."""

    def __init__(
        self, files: FileSystem, topic: TopicLog, segment: Segment, keys: LastOffsets
    ) -> None:
        super().__init__(files, topic, segment)
        self._keys = keys

    def _work(self, handle: int) -> None:
        for found in self._frames(handle):
            self._keys.add(self._batch(found))
            if self._keys.following is not None:
                return


class Rewrite(_SegmentWork):
    """Writes a segment anew beside the old one, if events are superseded in it, or
    its frames are small."""

    def __init__(
        self,
        files: FileSystem,
        topic: TopicLog,
        segment: Segment,
        last: dict[bytes, int],
    ) -> None:
        super().__init__(files, topic, segment)
        self.last = last
        """The last offset of each key; none: all events stay."""
        self._offsets = segment.end_offset - segment.base_offset
        self._most = most_bytes(topic.options.segment_bytes)
        self.temporary = segment.path + ".tmp"
        self.index: Index | None = None
        """Of the rewritten segment; None if the old one stays."""

    @property
    def whole(self) -> bool:
        """Whether the rewritten segment has an event for each of its offsets."""
        return self.index is not None and self.index.events == self._offsets

    def _work(self, handle: int) -> None:
        if self._is_worth_it(handle):
            path = self.segment.path
            created_ms = read_header(self._files, path, path).created_ms
            self._write(handle, created_ms)

    def _give_up(self) -> None:
        with suppress(OSError):
            remove_if_there(self._files, self.temporary)

    def _is_worth_it(self, handle: int) -> bool:
        """Whether events are superseded or frames small; not of a segment with damage.

        What cannot be read now may be readable another time. And if events are missing
        from a topic that is not compacted, its index has to tell of that.
        """
        end, events, superseded = self._start, 0, False
        sizes = FrameSizes()

        def looked_at() -> Iterator[TailFrame]:
            nonlocal end, events, superseded
            for found in self._frames(handle):
                if found.position != end:
                    return
                end += found.header.length
                events += found.header.events
                if self.last and not superseded:
                    batch = self._batch(found)
                    superseded = len(_survivors(batch, self.last)) < len(batch)
                yield TailFrame(found.header, found.body)

        sizes.add(looked_at(), self._most)
        small = sizes.small and (self.last or events == self._offsets)
        return end == self._length and (superseded or bool(small))

    def _write(self, source: int, created_ms: int) -> None:
        base = self.segment.base_offset
        head = encode_header(base, self._topic_id, created_ms, self._name)
        index = Index(length=len(head), end_offset=base)
        handle = self._files.open(self.temporary, write=True, create=True)
        try:
            self._files.truncate(handle, 0)
            self._files.write(handle, [head], 0)
            position = len(head)
            for frame, _ in gathered(self._name, self._kept(source), self._most):
                buffers: list[Buffer] = [pack(frame.header), frame.body]
                self._files.write(handle, buffers, position)
                index.add(position, frame.header)
                position += frame.header.length
            self._files.sync(handle)
        finally:
            self._files.close(handle)
        index.length = position
        self.index = index

    def _kept(self, source: int) -> Iterator[TailFrame]:
        """What is left of each frame; raises OSError if there is one missing."""
        end = self._start
        for found in self._frames(source):
            end += found.header.length
            header, batch = found.header, self._batch(found)
            indexes = _survivors(batch, self.last) if self.last else None
            if indexes is None or len(indexes) == len(batch):
                yield TailFrame(header, found.body)
            elif indexes:
                some = batch.take(indexes)
                frame = frame_of(some, header.base_offset, header.id_base)
                yield TailFrame.of(frame)
        if end != self._length:
            raise OSError(f"{self.segment.path} could be read only in part")


class SyncFolder:
    """Has the names in a topic's folder on disk."""

    def __init__(self, files: FileSystem, topic: TopicLog) -> None:
        self.error: WriteFailed | None = None
        self._files = files
        self._folder = topic.directory

    def run(self) -> None:
        try:
            self._files.sync_directory(self._folder)
        except OSError as error:
            self.error = write_error(self._folder, "compacting", error)


def _put_in_place(log: LogCore, topic: TopicLog, work: Rewrite) -> int | None:
    """Let a rewritten segment take the place of the old one.

    Returns the bytes that sets free, which may be none; None if the old one stays.
    """
    index, segment = work.index, work.segment
    known = log.catalog.by_id(topic.id) is topic and segment in topic.segments
    try:
        if index is None or not known:
            remove_if_there(log.files, work.temporary)
            return None
        stale = index_file(topic.directory, segment.base_offset)
        remove_if_there(log.files, stale)
        log.catalog.segment_cache.drop(segment.path)
        log.files.rename(work.temporary, segment.path)
    except OSError as error:
        raise write_error(segment.path, "compacting", error) from error
    freed = segment.length - index.length
    segment.length = index.length
    segment.max_timestamp_ms = index.max_timestamp_ms
    segment.index = None
    log.flusher.keep_no_index(segment)
    log.catalog.segment_cache.index(segment.path, lambda: index)
    return freed


def _survivors(batch: Batch, last: dict[bytes, int]) -> list[int]:
    """Indexes of the events no later one in ``last`` supersedes."""
    return [
        index
        for index, (offset, key) in enumerate(
            zip(batch.offsets(), batch.keys(), strict=True)
        )
        if key is None or last.get(key, offset) <= offset
    ]
