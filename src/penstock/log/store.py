"""Moving confirmed events from memory into segments, and checkpoints.

Both are planned on the owner's thread, run in any thread, and finished on the owner's
thread: a plan names the events and where they begin, ``run`` gathers small frames into
large ones, writes and syncs, and the topics change when it is finished. Until then
readers find the events in memory. A write that fails is planned again at the same
place, so it leaves no gap.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from penstock.errors import CorruptRecord, WriteFailed
from penstock.files import Buffer, FileSystem, write_error
from penstock.log import checkpoint as checkpoints
from penstock.log.checkpoint import Checkpoint, TopicRecord
from penstock.log.cutting import tidy
from penstock.log.frame import intact, pack, peek
from penstock.log.gather import gathered, most_bytes
from penstock.log.index import Index
from penstock.log.journal import Securing
from penstock.log.layout import Layout, segment_file
from penstock.log.segment import MAX_HEADER_BYTES, decode_header, encode_header
from penstock.log.tail import TailFrame, TailPart
from penstock.log.topic import Segment, TopicLog
from penstock.log.unsynced import MANY_FILES, Unsynced


@dataclass(slots=True, kw_only=True)
class SegmentWrite:
    """Frames for one segment, which is created first if it is new."""

    topic: TopicLog
    segment: Segment
    position: int
    new: bool
    frames: list[TailFrame] = field(default_factory=list)
    parts: list[TailPart] = field(default_factory=list)
    """What the frames were made of."""
    done: bool = False

    @property
    def end(self) -> int:
        return self.position + sum(frame.header.length for frame in self.frames)

    @property
    def end_offset(self) -> int:
        last = self.frames[-1].header if self.frames else None
        return self.segment.end_offset if last is None else last.end_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """What a topic has to be written, and behind what."""

    topic: TopicLog
    parts: list[TailPart]
    active: Segment | None
    position: int
    """Where in the active segment."""
    end_offset: int
    now_ms: int
    roll: bool

    def lay_out(self) -> list[SegmentWrite]:
        """Which frames go into which segments, rolling where it is due."""
        topic, now_ms = self.topic, self.now_ms
        writes: list[SegmentWrite] = []
        current: SegmentWrite | None = None
        if self.active is not None:
            current = SegmentWrite(
                topic=topic, segment=self.active, position=self.position, new=False
            )
        length = self.position
        most = most_bytes(topic.options.segment_bytes)
        for frame, parts in gathered(topic.name, self.parts, most):
            if current is None or _is_full(current, length, frame, now_ms):
                current = _new_segment(topic, frame.base_offset, now_ms)
                length = current.position
            if not current.frames:
                writes.append(current)
            current.frames.append(frame)
            current.parts += parts
            length += frame.size
        if self.roll and (current is None or length > topic.header_length):
            writes.append(_new_segment(topic, self.end_offset, now_ms))
        return writes


def plan_writes(topic: TopicLog, now_ms: int, *, roll: bool = False) -> TopicPlan:
    """Have what the topic has in memory alone written."""
    active = topic.active
    if active is not None and active.sealed:
        active = None
    return TopicPlan(
        topic=topic,
        parts=topic.tail.unwritten(),
        active=active,
        position=0 if active is None else active.length,
        end_offset=topic.end_offset,
        now_ms=now_ms,
        roll=roll,
    )


def _is_full(write: SegmentWrite, length: int, frame: TailFrame, now_ms: int) -> bool:
    options = write.topic.options
    if length <= write.topic.header_length:
        return False
    if length + frame.header.length > options.segment_bytes:
        return True
    return is_aged(write.segment, options.segment_age_s, now_ms)


def is_aged(segment: Segment, age_s: float | None, now_ms: int) -> bool:
    if age_s is None or segment.created_ms is None:
        return False
    return now_ms - segment.created_ms >= age_s * 1000


def _new_segment(topic: TopicLog, base_offset: int, now_ms: int) -> SegmentWrite:
    length = topic.header_length
    segment = Segment(
        base_offset=base_offset,
        end_offset=base_offset,
        path=segment_file(topic.directory, base_offset),
        length=length,
        created_ms=now_ms,
        index=Index(length=length, end_offset=base_offset),
    )
    return SegmentWrite(topic=topic, segment=segment, position=length, new=True)


class WriteOut:
    """Writes topics to segments, without syncing them; the handles stay open."""

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        plans: Sequence[TopicPlan],
        unsynced: Unsynced,
        *,
        direct_bytes: int | None = None,
    ) -> None:
        self.writes: list[SegmentWrite] = []
        self._plans = plans
        self.error: WriteFailed | None = None
        self._files = files
        self._layout = layout
        self._unsynced = unsynced
        self._direct_bytes = direct_bytes

    def run(self) -> None:
        name = self._layout.relative(self._layout.topics)
        try:
            self._unsynced.begin()
            for plan in self._plans:
                for write in self._looked_into(plan).lay_out():
                    self.writes.append(write)
                    name = self._layout.relative(write.segment.path)
                    self._perform(write)
                    write.done = True
        except OSError as error:
            self.error = write_error(name, "writing segment", error)
        except Exception as error:
            # A mistake of ours: it is in the journal, and nothing is done with it yet.
            self.error = WriteFailed(name, "writing segment", repr(error))

    def _looked_into(self, plan: TopicPlan) -> TopicPlan:
        """The plan for a topic whose folder has been tidied once since the start."""
        topic = plan.topic
        if topic.looked:
            return plan
        tidy(self._files, topic)
        topic.looked = True
        if plan.active is None or self._files.exists(plan.active.path):
            return plan
        plan.active.sealed = True  # it was lost: it must not grow
        return replace(plan, active=None, position=0)

    def _perform(self, write: SegmentWrite) -> None:
        topic, segment = write.topic, write.segment
        if write.new:
            self._files.make_directory(topic.directory)
        handle = self._files.open(segment.path, write=True, create=write.new)
        try:
            buffers: list[Buffer] = []
            position = write.position
            if write.new:
                if self._files.size(handle):  # of a try that failed
                    self._files.truncate(handle, 0)
                created = segment.created_ms or 0
                head = encode_header(segment.base_offset, topic.id, created, topic.name)
                buffers.append(head)
                position = 0
            for frame in write.frames:
                buffers += (pack(frame.header), frame.body)
            size = write.end - write.position
            if self._direct_bytes is not None and size >= self._direct_bytes:
                self._files.write_direct(handle, buffers, position)
            elif buffers:
                self._files.write(handle, buffers, position)
        except BaseException:
            self._files.close(handle)
            raise
        self._unsynced.keep(segment.path, handle, new=write.new)


def finish_write(write: SegmentWrite) -> Segment | None:
    """Let the topic know of frames that were written; the segment this sealed."""
    topic, segment = write.topic, write.segment
    sealed = None
    if write.new:
        sealed = topic.active
        if sealed is not None:
            sealed.sealed = True
        topic.segments.append(segment)
    position = write.position
    for frame in write.frames:
        if segment.index is not None:
            segment.index.add(position, frame.header)
        position += frame.header.length
    segment.length = position
    segment.end_offset = write.end_offset
    topic.tail.mark_written(len(write.parts), write.frames)
    return sealed


@dataclass(slots=True, kw_only=True)
class Dirty:
    """What was written since the last checkpoint and has to be synced by the next.

    ``segments`` says from which position on; ``suspect`` ones failed a sync: the
    kernel may have dropped their pages, so they are written again before the next.
    """

    segments: dict[str, int] = field(default_factory=dict)
    suspect: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)
    sealed: list[tuple[TopicLog, Segment]] = field(default_factory=list)

    def note(self, write: SegmentWrite) -> None:
        start = 0 if write.new else write.position
        self.segments.setdefault(write.segment.path, start)
        if write.new:
            self.directories.add(write.topic.directory)

    def merge(self, other: Dirty) -> None:
        """Take back what a failed checkpoint was to sync."""
        for path, start in other.segments.items():
            self.segments[path] = min(start, self.segments.get(path, start))
        self.suspect |= other.suspect
        self.directories |= other.directories
        self.sealed[:0] = other.sealed


def table(topics: Iterable[TopicLog]) -> list[TopicRecord]:
    """The topics as they stand, with what is in memory alone."""
    return [_record(topic) for topic in topics if topic.committed]


def _record(topic: TopicLog) -> TopicRecord:
    first, active, length = topic.place
    return TopicRecord(
        id=topic.id,
        name=topic.name,
        options=topic.options,
        start_offset=topic.start_offset,
        end_offset=topic.end_offset,
        active_base=active,
        active_length=length,
        first_base=first,
    )


def written(
    records: Iterable[TopicRecord], writes: Iterable[SegmentWrite]
) -> list[TopicRecord]:
    """The same topics when ``writes`` are done."""
    first: dict[int, SegmentWrite] = {}
    last: dict[int, SegmentWrite] = {}
    for one_write in writes:
        first.setdefault(one_write.topic.id, one_write)
        last[one_write.topic.id] = one_write
    return [
        one
        if (write := last.get(one.id)) is None
        else msgspec.structs.replace(
            one,
            active_base=write.segment.base_offset,
            active_length=write.end,
            first_base=_or(one.first_base, first[one.id].segment.base_offset),
        )
        for one in records
    ]


def _or(known: int | None, other: int) -> int:
    return other if known is None else known


class TakeCheckpoint:
    """Writes out what is left, syncs all that is dirty, and stores the checkpoint."""

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        checkpoint: Checkpoint,
        write_out: WriteOut,
        dirty: Dirty,
        unsynced: Unsynced,
        *,
        securing: Securing,
        keep: int,
    ) -> None:
        self.checkpoint = checkpoint
        self.write_out = write_out
        self.dirty = dirty
        self.error: WriteFailed | None = None
        self.synced = False
        """Whether all segments are, those it wrote included."""
        self.oldest_kept = 0
        self.securing = securing
        self._files = files
        self._layout = layout
        self.keep = keep
        self._unsynced = unsynced

    def run(self) -> None:
        self.write_out.run()
        self.error = self.write_out.error
        if self.error is not None:
            return
        topics = written(self.checkpoint.topics, self.write_out.writes)
        self.checkpoint = msgspec.structs.replace(self.checkpoint, topics=topics)
        try:
            # An older checkpoint may have to do, and needs all of the journal behind.
            self.securing.run()
            self._sync_segments()
            self._sync_directories()
            checkpoints.store(self._files, self._layout, self.checkpoint)
            self.oldest_kept = checkpoints.prune(
                self._files, self._layout, keep=self.keep
            )
        except (OSError, CorruptRecord) as caught:
            error = caught if isinstance(caught, OSError) else OSError(str(caught))
            name = self._layout.relative(self._layout.checkpoints)
            self.error = write_error(name, "checkpointing to", error)

    def _sync_segments(self) -> None:
        for write in self.write_out.writes:
            self.dirty.note(write)
        if len(self.dirty.segments) > MANY_FILES and not self.dirty.suspect:
            self._sync_all()
            return
        for path, start in sorted(self.dirty.segments.items()):
            if self._files.exists(path):
                self._sync_segment(path, start)
            del self.dirty.segments[path]
            self._unsynced.let_go(path)
        self._unsynced.close()
        self.synced = True

    def _sync_all(self) -> None:
        """All at once, names too: one by one, many small topics take minutes."""
        try:
            self._unsynced.sync_all()
        except OSError:
            self.dirty.suspect.update(self.dirty.segments)
            raise
        self.dirty.segments.clear()
        self.dirty.directories.clear()
        self.synced = True

    def _sync_segment(self, path: str, start: int) -> None:
        kept = self._unsynced.handle(path)
        handle = self._files.open(path, write=True) if kept is None else kept
        try:
            # A fresh handle has not seen what became of the pages written before.
            if kept is None or path in self.dirty.suspect:
                self._write_again(handle, start)
            self._files.sync(handle)
            self.dirty.suspect.discard(path)
        except OSError:
            self.dirty.suspect.add(path)
            raise
        finally:
            if kept is None:
                self._files.close(handle)

    def _write_again(self, handle: int, start: int) -> None:
        """Dirty the pages of a failed sync again, if they are still what they were."""
        data = memoryview(self._files.read(handle, self._files.size(handle), start))
        at = 0
        if start == 0:
            at = decode_header(bytes(data[:MAX_HEADER_BYTES]), "segment").length
        while at < len(data):
            header = peek(data, at)
            if header is None or not intact(data, at, header):
                raise OSError(errno.EIO, "the disk lost what it had taken")
            at += header.length
        self._files.write(handle, [data], start)

    def _sync_directories(self) -> None:
        directories = filter(self._files.exists, sorted(self.dirty.directories))
        for path in directories:
            self._files.sync_directory(path)
        if self.dirty.directories:
            self._files.sync_directory(self._layout.topics)
