"""Keeps confirmed events: in memory first, then in segments, then in a checkpoint.

At most one piece of work (a write-out, a checkpoint, an erasure) is under way at a
time. The flusher plans it and finishes it; the work itself may run in another thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from penstock.errors import Backlogged, WriteFailed
from penstock.files import FileSystem, replace_file
from penstock.log.catalog import Catalog
from penstock.log.checkpoint import KEPT, Checkpoint
from penstock.log.cutting import Erase, Erasure, erasures
from penstock.log.index import Index
from penstock.log.journal import Securing
from penstock.log.layout import Layout, index_file
from penstock.log.options import LogOptions
from penstock.log.store import (
    Dirty,
    SegmentWrite,
    TakeCheckpoint,
    TopicPlan,
    WriteOut,
    finish_write,
    plan_writes,
    table,
)
from penstock.log.tail import TailPart
from penstock.log.topic import Segment, TopicLog
from penstock.log.unsynced import Unsynced

logger = logging.getLogger(__name__)

StoreStep = WriteOut | TakeCheckpoint | Erase

# Topics of one write-out of a log at work. Each may need a folder and a file: up to 0.5
# ms of the file system, and some 10 us of the owner's thread. A commit that
# comes meanwhile waits for no more than that in the file system's own journal.
MAX_TOPICS = 256
# Writes whose frames stay in memory for readers: each takes some 1.5 KiB besides, with
# what its topic gives back when it is quiet.
MAX_CACHED = 5_000
# Pause before files that could not be erased are tried again.
ERASE_AGAIN_MS = 1000


class Flusher:
    def __init__(
        self, files: FileSystem, layout: Layout, options: LogOptions, catalog: Catalog
    ) -> None:
        self._files = files
        self._layout = layout
        self._options = options
        self._waiting: dict[int, TopicLog] = {}
        self._cached: deque[tuple[TopicLog, int]] = deque()
        self._cached_bytes = 0
        self._unmade: set[int] = set()
        """Those of them that have no file yet."""
        self._work: StoreStep | None = None
        self.catalog = catalog
        self.dirty = Dirty()
        self._unsynced = Unsynced(files, layout.topics)
        self.unwritten_bytes = 0
        self.error: WriteFailed | None = None
        self.unfinished: list[Callable[[], None]] = []
        """Cuts of files that a checkpoint has to wait for."""
        self._rolling: dict[int, TopicLog] = {}
        self._rolls: WriteOut | None = None
        """The work that seals segments which were to be sealed."""
        self._dropped: list[TopicLog] = []
        self.roll_error: WriteFailed | None = None
        """Why the last segments that were to be sealed were not."""
        self._erasures: deque[Erasure] = deque()
        self.erase_error: WriteFailed | None = None
        """Why the last erasure failed, if it did."""
        self._erase_at_ms = 0
        """When that is tried again."""

    @property
    def idle(self) -> bool:
        return self._work is None

    @property
    def rolling(self) -> bool:
        """Whether segments are to be sealed yet."""
        return bool(self._rolling) or self._rolls is not None

    def roll_soon(self, topics: Iterable[TopicLog]) -> None:
        """Have the active segments of topics sealed by the next write-out."""
        self._rolling.update((topic.id, topic) for topic in topics)

    def drop(self, topic: TopicLog) -> None:
        """Forget a deleted topic and have its files erased, when nothing uses them."""
        self._dropped.append(topic)
        if self.idle:
            self._forget_dropped()

    def erase_soon(self, topic: TopicLog, gone: Sequence[Segment]) -> None:
        """Have the files of segments erased that a topic no longer has."""
        self.let_go(gone)
        for segment in gone:
            self.catalog.segment_cache.drop(segment.path)
        self._erasures.extend(erasures(topic, gone))

    def _forget_dropped(self) -> None:
        while self._dropped:
            topic = self._dropped.pop()
            self.forget(topic)
            self.erase_soon(topic, topic.segments)
            self._erasures.append(Erasure(topic.directory))

    def confirm(self, parts: Iterable[tuple[TopicLog, TailPart]]) -> None:
        """Make committed events readable."""
        waiting, size = self._waiting, 0
        for topic, part in parts:
            topic.tail.append(part)
            topic.end_offset = part.end_offset
            if topic.id not in waiting:
                waiting[topic.id] = topic
                if not topic.segment_count:
                    self._unmade.add(topic.id)
            size += part.size
        self.unwritten_bytes += size

    def forget(self, topic: TopicLog) -> None:
        """Drop what memory holds of a topic that goes or changes."""
        written, unwritten = topic.tail.clear()
        self._cached_bytes -= written
        self.unwritten_bytes -= unwritten
        self._waiting.pop(topic.id, None)
        self._unmade.discard(topic.id)
        self._rolling.pop(topic.id, None)
        self._cached = deque(one for one in self._cached if one[0] is not topic)

    def forget_written(self, topic: TopicLog) -> None:
        """Drop what memory holds of a topic that is in segments too."""
        mine = sum(count for one, count in self._cached if one is topic)
        self._cached_bytes -= topic.tail.drop_written(mine)
        self._cached = deque(one for one in self._cached if one[0] is not topic)

    def cut(self, topic: TopicLog, offset: int) -> None:
        """Drop what memory holds of a topic from ``offset`` on."""
        written, unwritten = topic.tail.cut(offset)
        self._cached_bytes -= written
        self.unwritten_bytes -= unwritten

    def finish_erasures(self) -> bool:
        """Erase here and now what is to be erased yet; False if that fails again."""
        try:
            self._finish_cuts()
            while self._erasures:
                self._erasures[0].run(self._files)
                self._erasures.popleft()
        except OSError as error:
            self._say_not_erased(error)
        return not (self.unfinished or self._erasures)

    def nothing_to_erase(self) -> bool:
        """Whether a checkpoint may come: it would forget what is to be erased."""
        try:
            self._finish_cuts()
        except OSError as error:
            self._say_not_erased(error)
        return not (self.unfinished or self._erasures)

    def _finish_cuts(self) -> None:
        while self.unfinished:
            self.unfinished[0]()
            del self.unfinished[0]

    def _say_not_erased(self, error: Exception) -> None:
        logger.error(
            "files of events that are gone stay for now: %s",
            error,
            extra={"action": "erase_failed"},
        )

    def check_room(self) -> None:
        """Refuse more events while those before cannot be written out."""
        if self.unwritten_bytes <= 2 * self._options.write_out_bytes:
            return
        if self.error is not None:
            raise self.error
        if not self.idle:
            limit = 2 * self._options.write_out_bytes
            raise Backlogged(self.unwritten_bytes, limit)

    @property
    def crowded(self) -> bool:
        """Whether more topics without a file wait than are written out at once.

        Those that have one cost little, and wait again with their next events.
        """
        return len(self._unmade) > MAX_TOPICS

    @property
    def busy(self) -> bool:
        """Whether more topics wait than are written out at once."""
        return len(self._waiting) > MAX_TOPICS

    def begin_write_out(
        self,
        now_ms: int,
        *,
        roll: Iterable[TopicLog] = (),
        most: int | None = None,
    ) -> WriteOut:
        """Plan to write out what is in memory alone; of ``most`` topics, if that is
        said, those that have waited for longest."""
        assert self.idle, "one piece of work at a time"
        rolled = {**self._rolling, **{topic.id: topic for topic in roll}}
        work = self._write_out(self._plan(now_ms, rolled, most))
        if self._rolling:
            self._rolling, self._rolls = {}, work
        self._work = work
        return work

    @property
    def erasing(self) -> bool:
        """Whether there are files to be erased."""
        return bool(self._erasures)

    def begin_erasing(self, now_ms: int) -> Erase | None:
        """Plan to erase what is first in turn; None if there is nothing.

        What failed is tried again after a pause.
        """
        assert self.idle, "one piece of work at a time"
        pause_ms = self._erase_at_ms - now_ms
        if not self._erasures or 0 < pause_ms <= ERASE_AGAIN_MS:
            return None
        self._erase_at_ms = now_ms + ERASE_AGAIN_MS
        work = self._work = Erase(self._files, self._erasures[0])
        return work

    def begin_checkpoint(
        self,
        position: int,
        number: int,
        snapshots: dict[int, bytes],
        now_ms: int,
        *,
        securing: Securing,
        keep: int = KEPT,
    ) -> TakeCheckpoint:
        """Plan a checkpoint of everything confirmed so far."""
        assert self.idle, "one piece of work at a time"
        self._store_indexes()
        checkpoint = Checkpoint(
            position=position,
            number=number,
            next_topic_id=self.catalog.next_id,
            topics=table(self.catalog),
            snapshots=snapshots,
        )
        work = TakeCheckpoint(
            self._files,
            self._layout,
            checkpoint,
            self._write_out(self._plan(now_ms, {})),
            self.dirty,
            self._unsynced,
            securing=securing,
            keep=keep,
        )
        self._work = work
        self.dirty = Dirty()
        return work

    def let_go(self, segments: Iterable[Segment]) -> None:
        """These segments go: do not hold on to their files."""
        for segment in segments:
            self._unsynced.give_up(segment.path)
        if self.idle:
            self._unsynced.purge()

    def close(self) -> None:
        """Let go of all files, unless work on them is under way."""
        if self.idle:
            self._unsynced.close()

    def _write_out(self, plans: list[TopicPlan]) -> WriteOut:
        return WriteOut(
            self._files,
            self._layout,
            plans,
            self._unsynced,
            direct_bytes=self._options.direct_write_bytes,
        )

    def finish(self, work: StoreStep) -> None:
        """Take note of what a piece of work has done."""
        assert work is self._work
        self._work = None
        if work is self._rolls:
            self._rolls, self.roll_error = None, work.error
        if isinstance(work, Erase):
            self._finish_erasing(work)
        else:
            self._finish_writing(work)
        self._forget_dropped()

    def _finish_erasing(self, work: Erase) -> None:
        if work.error is None:
            self._erasures.popleft()
            self._erase_at_ms = 0
        elif self.erase_error is None:
            self._say_not_erased(work.error)
        self.erase_error = work.error

    def _finish_writing(self, work: WriteOut | TakeCheckpoint) -> None:
        write_out = work if isinstance(work, WriteOut) else work.write_out
        synced = isinstance(work, TakeCheckpoint) and work.synced
        for write in write_out.writes:
            if write.done:
                self._finish_write(write, synced=synced)
        if isinstance(work, TakeCheckpoint) and work.error is not None:
            self.dirty.merge(work.dirty)
        self._report(work.error)
        self._evict()

    def _plan(
        self, now_ms: int, rolled: Mapping[int, TopicLog], most: int | None = None
    ) -> list[TopicPlan]:
        topics = {**dict(islice(self._waiting.items(), most)), **rolled}
        return [
            plan_writes(topic, now_ms, roll=topic.id in rolled)
            for topic in topics.values()
        ]

    def _finish_write(self, write: SegmentWrite, *, synced: bool) -> None:
        topic = write.topic
        sealed = finish_write(write)
        if not synced:
            self.dirty.note(write)
        if sealed is not None:
            self.dirty.sealed.append((topic, sealed))
            self._seal(topic, sealed)
        self.unwritten_bytes -= sum(part.size for part in write.parts)
        self._cached.append((topic, len(write.frames)))
        self._cached_bytes += sum(frame.size for frame in write.frames)
        self._unmade.discard(topic.id)
        waited = self._waiting.pop(topic.id, None)
        if waited is not None and not topic.tail.all_written:
            self._waiting[topic.id] = waited  # others have waited for longer by now

    def _seal(self, topic: TopicLog, segment: Segment) -> None:
        self.catalog.may_gather = True
        if segment.index is not None:
            segment.max_timestamp_ms = segment.index.max_timestamp_ms
        logger.info(
            "segment of topic %s sealed at offset %s",
            topic.name,
            segment.end_offset,
            extra={"action": "segment_rolled", "topic": topic.name},
        )

    def keep_no_index(self, segment: Segment) -> None:
        """A segment was compacted: that there is no file of its index says so."""
        sealed = self.dirty.sealed
        self.dirty.sealed = [one for one in sealed if one[1] is not segment]

    def keep_index(self, topic: TopicLog, segment: Segment, index: Index) -> None:
        """A rewritten segment lacks no event: its index is stored as a sealed one's."""
        segment.index = index
        self.dirty.sealed.append((topic, segment))

    def _store_indexes(self) -> None:
        """Write the indexes of segments sealed lately; they can be rebuilt."""
        for topic, segment in self.dirty.sealed:
            here = self.catalog.by_id(topic.id) is topic
            if not here or segment not in topic.segments:
                continue
            index = segment.index or topic.index_of(segment)
            path = index_file(topic.directory, segment.base_offset)
            try:
                # Whole, or a process that is killed now leaves one that looks damaged.
                replace_file(self._files, path, index.encode(), sync=False)
            except OSError:
                continue  # rebuilt when it is needed
            segment.index = None
        self.dirty.sealed.clear()

    def _report(self, error: WriteFailed | None) -> None:
        if error is not None and self.error is None:
            logger.error(
                "events stay in memory and journal: %s",
                error,
                extra={"action": "write_out_failed"},
            )
        elif error is None and self.error is not None:
            logger.info(
                "segments are written again", extra={"action": "write_out_resumed"}
            )
        self.error = error

    def _evict(self) -> None:
        """Drop the frames that were written out longest ago, over the limit.

        A topic of which nothing is left in memory is quiet.
        """
        most = self._options.tail_cache_bytes
        while self._cached and (
            self._cached_bytes > most or len(self._cached) > MAX_CACHED
        ):
            topic, count = self._cached.popleft()
            self._cached_bytes -= topic.tail.drop_written(count)
            topic.rest()
