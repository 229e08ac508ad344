"""The open group: what was appended since the last commit, and the commit itself.

Everything appended to one topic in one group becomes one frame, so a thousand
publishers of single events cost one frame, one checksum and one write. Topics that got
few events share one (rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from penstock.errors import InDoubt, WriteFailed
from penstock.log.frame import FrameHeader, pack
from penstock.log.interface import CommittedFrame, StoredTopic
from penstock.log.journal import EntryKind, Journal, JournalEntry
from penstock.log.rows import MAX_ROWS_BYTES, Rows, part_of
from penstock.log.tail import TailFrame, TailPart
from penstock.log.topic import TopicLog
from penstock.model.columns import Columns


@dataclass(slots=True)
class OpenFrame:
    """Events of one topic that will be one frame."""

    topic: TopicLog
    base_offset: int
    low_id: int
    """What the id of the first event has below its time."""
    columns: Columns = field(default_factory=Columns)
    size: int = 0


@dataclass(slots=True)
class SealedFrame:
    """A frame that was encoded by its publisher: a new header, the same body."""

    topic: TopicLog
    header: FrameHeader
    body: memoryview


@dataclass(slots=True)
class OpenGroup:
    number: int
    sync: bool = False
    size: int = 0
    items: list[OpenFrame | SealedFrame | Rows | JournalEntry] = field(
        default_factory=list
    )
    open_frames: dict[int, OpenFrame] = field(default_factory=dict)
    made: list[JournalEntry] = field(default_factory=list)
    """Topics as they are made or set: they stand in front of everything else."""
    rows: Rows | None = None
    """Where small events go."""
    behind_rows: set[int] = field(default_factory=set)
    """Topics of which something stands behind these rows."""
    first_offsets: dict[int, tuple[TopicLog, int]] = field(default_factory=dict)
    undo: list[Callable[[], None]] = field(default_factory=list)
    then: list[Callable[[], None]] = field(default_factory=list)
    """Run when the group is committed, before its frames become readable."""
    last: list[Callable[[], None]] = field(default_factory=list)
    """Run when they are."""

    def touch(self, topic: TopicLog, *, relaxed: bool = False) -> None:
        """Note where a topic stood before this group."""
        if topic.id not in self.first_offsets:
            self.first_offsets[topic.id] = (topic, topic.next_offset)
        if not relaxed and topic.options.durability == "sync":
            self.sync = True

    def touch_each(self, topics: Collection[TopicLog], *, relaxed: bool) -> None:
        """The same of several topics."""
        first = self.first_offsets
        for topic in topics:
            if topic.id not in first:
                first[topic.id] = (topic, topic.next_offset)
        if not (relaxed or self.sync):
            self.sync = any([one.options.durability == "sync" for one in topics])

    def open(self, topic: TopicLog, base_offset: int, low_id: int) -> OpenFrame:
        """Begin a frame for the events of a topic."""
        frame = self.open_frames[topic.id] = OpenFrame(topic, base_offset, low_id)
        self.put(topic, frame)
        return frame

    def put(self, topic: TopicLog, frame: OpenFrame | SealedFrame) -> None:
        """Add a frame of a topic."""
        if self.rows is not None and topic in self.rows.topics:
            self.rows = None
        self.behind_rows.add(topic.id)
        self.items.append(frame)

    def enter(self, entry: JournalEntry) -> None:
        """Add what is not events."""
        self.open_frames.pop(entry.topic, None)
        if entry.kind == EntryKind.TOPIC:
            self.made.append(entry)
            return
        if entry.topic:
            self.rows = None
        self.items.append(entry)

    def share(
        self,
        topics: Sequence[TopicLog],
        events: Columns,
        row_bytes: Sequence[int],
        low_id: Callable[[TopicLog], int],
    ) -> list[int]:
        """Add small events, each to the topic at its place; the offsets they get."""
        rows, behind = self.rows, self.behind_rows
        if (
            rows is None
            or rows.size + events.size > MAX_ROWS_BYTES
            or (behind and any(topic.id in behind for topic in topics))
        ):
            rows = self.rows = Rows(low_id)
            behind.clear()
            self.items.append(rows)
        self.size += events.size
        return rows.add(topics, events, row_bytes)

    def roll_back(self) -> None:
        """Undo what this group did to the state in memory."""
        for step in reversed(self.undo):
            step()
        for topic, offset in self.first_offsets.values():
            topic.next_offset = offset
            topic.low_id = None  # another event gets the offset, and no id twice


class Commit:
    """One group on its way to the journal. ``run`` may be called in any thread.

    Afterwards it is done, has an ``error``, or is in ``doubt``: then it has not ended,
    and ``run`` is to be called again later.
    """

    def __init__(
        self, group: OpenGroup, journal: Journal, *, time_ms: int, sync: bool
    ) -> None:
        self.group = group
        self.sync = sync
        self.error: WriteFailed | None = None
        self.doubt: InDoubt | None = None
        self.parts: list[tuple[TopicLog, TailPart]] = []
        """What each topic has of it, in the order of its offsets."""
        self._contents: list[CommittedFrame | Rows] = []
        self._journal = journal
        self._time_ms = time_ms
        entries = chain.from_iterable(map(self._entries_of, group.items))
        self._entries = [*group.made, *entries]

    @property
    def blocks(self) -> bool:
        """Whether it may take long: then no thread but a worker's runs it."""
        return self.sync or self._journal.blocks

    @property
    def brief(self) -> bool:
        """Whether it is no more than one small write and one sync of a disk."""
        return bool(self._entries) and self._journal.is_brief(self.size)

    @property
    def size(self) -> int:
        """Its bytes, about."""
        return self.group.size

    def run(self) -> None:
        doubted, self.doubt = self.doubt is not None, None
        try:
            if doubted:
                self._journal.settle()
            elif self._entries:
                self._journal.append(
                    self.group.number, self._entries, self._time_ms, sync=self.sync
                )
            elif self.sync:
                self._journal.sync()
        except InDoubt as doubt:
            self.doubt = doubt
        except WriteFailed as error:
            self.error = error
        except Exception as error:
            # Whatever it was, the commit has ended and has confirmed nothing.
            self.error = WriteFailed("the journal", "committing to", repr(error))

    @property
    def number(self) -> int:
        """Of its group."""
        return self.group.number

    def counts(self) -> Iterator[tuple[StoredTopic, int, int]]:
        """Topics, and how many events and bytes each got."""
        for one in self._contents:
            if isinstance(one, CommittedFrame):
                yield one.topic, one.frame.events, one.frame.size
            else:
                yield from one.sizes()

    def contents(self) -> Sequence[CommittedFrame | Rows]:
        return self._contents

    def _entries_of(
        self, item: OpenFrame | SealedFrame | Rows | JournalEntry
    ) -> Iterator[JournalEntry]:
        match item:
            case JournalEntry():
                yield item
            case Rows():
                item.close()
                if item.shares:
                    self._contents.append(item)
                    self.parts += item.parts
                    yield JournalEntry(EntryKind.ROWS, 0, *item.encode())
                    return
                for topic, mine in item.parts:
                    columns = mine.columns()
                    part = part_of(columns, mine.base_offset, mine.low_id)
                    yield self._frame_entry(topic, part, columns)
            case OpenFrame(topic, base_offset, low_id, columns, _):
                part = part_of(columns, base_offset, low_id)
                yield self._frame_entry(topic, part, columns)
            case SealedFrame(topic, header, body):
                yield self._frame_entry(topic, TailFrame(header, body), None)

    def _frame_entry(
        self, topic: TopicLog, part: TailPart, columns: Columns | None
    ) -> JournalEntry:
        frame = part.frame()
        self._contents.append(CommittedFrame(topic, frame, columns))
        self.parts.append((topic, part))
        return JournalEntry(EntryKind.EVENTS, topic.id, pack(frame.header), frame.body)
