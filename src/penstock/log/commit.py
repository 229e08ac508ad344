"""The open group: what was appended since the last commit, and the commit itself.

Everything appended to one topic in one group becomes one frame, so a thousand
publishers of single events cost one frame, one checksum and one write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.errors import InDoubt, WriteFailed
from penstock.log.batch import Batch
from penstock.log.columns import frame_of
from penstock.log.frame import FrameHeader, pack
from penstock.log.journal import EntryKind, Journal, JournalEntry
from penstock.log.tail import TailFrame
from penstock.log.topic import TopicLog
from penstock.model.columns import Columns


@dataclass(slots=True)
class OpenFrame:
    """Events of one topic that will be one frame."""

    topic: TopicLog
    base_offset: int
    id_base: bytes
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
    items: list[OpenFrame | SealedFrame | JournalEntry] = field(default_factory=list)
    open_frames: dict[int, OpenFrame] = field(default_factory=dict)
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

    def roll_back(self) -> None:
        """Undo what this group did to the state in memory."""
        for step in reversed(self.undo):
            step()
        for topic, offset in self.first_offsets.values():
            topic.next_offset = offset


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
        self.frames: list[tuple[TopicLog, TailFrame]] = []
        self._columns: list[Columns | None] = []
        self._journal = journal
        self._time_ms = time_ms
        self._entries = [self._entry(item) for item in group.items]

    @property
    def blocks(self) -> bool:
        """Whether it may take long: then no thread but a worker's runs it."""
        return self.sync or self._journal.blocks

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

    def headers(self) -> Iterator[tuple[TopicLog, FrameHeader]]:
        """What its frames say of themselves."""
        return ((topic, frame.header) for topic, frame in self.frames)

    def batches(self) -> Iterator[tuple[TopicLog, Batch, Columns | None]]:
        """The frames, and the columns of those where they are at hand."""
        for (topic, frame), columns in zip(self.frames, self._columns, strict=True):
            yield topic, Batch.whole(topic.name, *frame), columns

    def _entry(self, item: OpenFrame | SealedFrame | JournalEntry) -> JournalEntry:
        columns: Columns | None = None
        match item:
            case OpenFrame(topic, base_offset, id_base, columns, _):
                batch = Batch.of(topic.name, frame_of(columns, base_offset, id_base))
                header, body = batch.header, batch.body
            case SealedFrame(topic, header, body):
                pass
            case JournalEntry():
                return item
        self.frames.append((topic, TailFrame(header, body)))
        self._columns.append(columns)
        return JournalEntry(EntryKind.EVENTS, topic.id, pack(header), body)
