"""What comes in: the open group, its commit, and what became of each group.

A group is numbered; the number is the *position* callers hold on to. When a write or
sync fails, the group and everything appended after it are taken back: their offsets
are given out again, their numbers are not.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence

from penstock.errors import InvalidBatch
from penstock.log import rows
from penstock.log.batch import Batch
from penstock.log.commit import Commit, OpenGroup, SealedFrame
from penstock.log.frame import FrameFlag, seal
from penstock.log.interface import Appended, AppendedRows, GroupOutcome
from penstock.log.journal import Journal, JournalEntry
from penstock.log.journal.group import ENTRY
from penstock.log.topic import TopicLog
from penstock.model import ids
from penstock.model.columns import MAX_BATCH_BYTES, Columns

logger = logging.getLogger(__name__)

# A plain number: an operator of enum costs more than the rest of the line.
_COUNTED_IDS = ~int(FrameFlag.IDS_BY_TIME)

# Runs of failed groups remembered; a caller asking after that many has lost interest.
_FAILURES_KEPT = 10_000


class Intake:
    def __init__(
        self,
        journal: Journal,
        entropy: Callable[[int], bytes],
        *,
        number: int,
    ) -> None:
        self._entropy = entropy
        self._failing = False
        self._failed: deque[tuple[int, int]] = deque(maxlen=_FAILURES_KEPT)
        self._commit: Commit | None = None
        self.journal = journal
        self.group = OpenGroup(number + 1)
        self.written = self.synced = number

    @property
    def idle(self) -> bool:
        return self._commit is None

    @property
    def doubted(self) -> Commit | None:
        """The commit under way, if it is not known what became of it."""
        commit = self._commit
        return commit if commit is not None and commit.doubt is not None else None

    def append(
        self, topic: TopicLog, events: Columns | Batch, *, relaxed: bool = False
    ) -> Appended:
        """Add checked events to the open group."""
        group, base, count = self.group, topic.next_offset, len(events)
        group.touch(topic, relaxed=relaxed)
        if isinstance(events, Batch):
            topic.next_offset += count
            frame = self._restamp(topic, events, base)
            group.open_frames.pop(topic.id, None)
            group.put(topic, frame)
            group.size += frame.header.length
            return Appended(topic.name, base, count, group.number, frame.header.id_base)
        open_frame = group.open_frames.get(topic.id)
        if open_frame is None and is_small(events):
            sizes = events.row_bytes() if count > 1 else [events.size]
            group.share([topic] * count, events, sizes, self._low_id)
        else:
            if open_frame is None or open_frame.size + events.size > MAX_BATCH_BYTES:
                open_frame = group.open(topic, base, self._low_id(topic) + base)
            topic.next_offset += count
            open_frame.columns.extend(events)
            open_frame.size += events.size
            group.size += events.size
        stamps = events.distinct_timestamps()
        return Appended(
            topic.name,
            base,
            count,
            group.number,
            ids.id_base(stamps[0], self._low_id(topic) + base),
            stamps if len(stamps) > 1 else None,
        )

    def append_rows(
        self, topics: Sequence[TopicLog], events: Columns, *, relaxed: bool = False
    ) -> AppendedRows:
        """Add checked events to the open group, each to the topic at its place."""
        group = self.group
        once = dict.fromkeys(topics)
        group.touch_each(once, relaxed=relaxed)
        row_bytes = events.row_bytes()
        if max(row_bytes) > rows.MAX_BYTES:
            offsets = self._append_apart(topics, events, relaxed=relaxed)
        else:
            if group.open_frames:
                for topic in once:
                    group.open_frames.pop(topic.id, None)
            offsets = group.share(topics, events, row_bytes, self._low_id)
        lows = {topic: topic.low_id or self._low_id(topic) for topic in once}
        return AppendedRows(group.number, offsets, topics, lows, events.timestamps)

    def _append_apart(
        self, topics: Sequence[TopicLog], events: Columns, *, relaxed: bool
    ) -> list[int]:
        """The same, topic by topic, as some events are large; the offsets they get."""
        of_topic: dict[TopicLog, list[int]] = {}
        for row, topic in enumerate(topics):
            of_topic.setdefault(topic, []).append(row)
        offsets = [0] * len(topics)
        for topic, mine in of_topic.items():
            some = events.pick(mine)
            some.check()
            first = self.append(topic, some, relaxed=relaxed).base_offset
            for offset, row in enumerate(mine, first):
                offsets[row] = offset
        return offsets

    def put_back(self, topic: TopicLog, frame: bytearray) -> None:
        """Add a frame that keeps its offsets and ids, which end the topic."""
        whole = Batch.of(topic.name, frame)
        self.group.touch(topic)
        self.group.put(topic, SealedFrame(topic, whole.header, whole.body))
        topic.next_offset = whole.header.end_offset

    def enter(self, kind: int, topic_id: int, data: bytes, *, sync: bool = True) -> int:
        """Add an entry that is not events; the number of its group."""
        self.group.enter(JournalEntry(kind, topic_id, data))
        self.group.size += ENTRY.size + len(data)
        self.group.sync = self.group.sync or sync
        return self.group.number

    def begin_commit(self, time_ms: int, *, sync: bool | None) -> Commit | None:
        """Close the open group; None if there is nothing to do or one is running."""
        group = self.group
        wanted = group.sync if sync is None else sync
        if self._commit is not None:
            return None
        if not (group.items or group.made) and not (
            wanted and self.synced < self.written
        ):
            return None
        self._commit = Commit(group, self.journal, time_ms=time_ms, sync=wanted)
        self.group = OpenGroup(group.number + 1)
        return self._commit

    def end_commit(self, commit: Commit) -> None:
        """Note how a commit ended; a failed one is taken back."""
        assert commit is self._commit, "commits end in the order they began"
        assert commit.doubt is None, "what is in doubt has not ended"
        self._commit = None
        if commit.error is not None:
            self._take_back(commit)
            return
        if self._failing:
            self._failing = False
            logger.info("commits succeed again", extra={"action": "commit_resumed"})
        self.written = commit.group.number
        if commit.sync:
            self.synced = commit.group.number

    def outcome(self, group: int) -> GroupOutcome:
        """What became of a group."""
        failed = self._failed
        if failed and any(first <= group <= last for first, last in failed):
            return "failed"
        if group <= self.synced:
            return "synced"
        return "written" if group <= self.written else "pending"

    def close(self, *, clean: bool) -> None:
        try:
            if clean:
                self.journal.close()
        finally:
            self.journal.abandon()

    def _restamp(self, topic: TopicLog, batch: Batch, base: int) -> SealedFrame:
        """The publisher's frame with our offset and ids in its header."""
        low = self._low_id(topic) + base
        id_base = ids.id_base(batch.header.min_timestamp_ms, low)
        # What is answered counts on from the base.
        flags = batch.header.flags & _COUNTED_IDS
        header = batch.header._replace(flags=flags, base_offset=base, id_base=id_base)
        return SealedFrame(topic, seal(header, batch.body), batch.body)

    def _low_id(self, topic: TopicLog) -> int:
        """From where the generated ids of a topic are counted; drawn when needed."""
        if topic.low_id is None:
            topic.low_id = ids.low_id(self._entropy(ids.RANDOM_BYTES))
        return topic.low_id

    def _take_back(self, commit: Commit) -> None:
        """Undo the failed group, and the one collected on top of it."""
        self.group.roll_back()
        commit.group.roll_back()
        first, last = commit.group.number, self.group.number
        if self._failed and self._failed[-1][1] + 1 == first:
            first = self._failed.pop()[0]
        self._failed.append((first, last))
        self.group = OpenGroup(self.group.number + 1)
        if not self._failing:
            self._failing = True
            logger.error(
                "nothing is confirmed: %s",
                commit.error,
                extra={"action": "commit_failed"},
            )


def is_small(events: Columns) -> bool:
    """Whether events share an entry with those of other topics."""
    return len(events) <= rows.MAX_EVENTS and events.size <= rows.MAX_BYTES


def checked_size(events: Columns | Batch, max_event_bytes: int) -> int:
    """Size of events that can be stored; raises InvalidBatch for others."""
    if not isinstance(events, Batch):
        return events.check(max_event_bytes)
    if len(events) != events.header.events or not events.dense:
        raise InvalidBatch("batch", "a part of a frame", "a whole frame")
    return events.header.length
