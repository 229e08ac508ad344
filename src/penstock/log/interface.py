"""The log as other rooms see it: a broker and its gateways ask for nothing else.

The code that puts a broker together opens a ``Log``; all other code is handed a
``BrokerLog`` and depends on what is written here, not on how it is done.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, Self

from penstock.errors import InDoubt, WriteFailed
from penstock.files import FileSystem
from penstock.log.batch import Batch
from penstock.log.options import LogOptions, TopicOptions
from penstock.log.tail import TailFrame
from penstock.model import ids
from penstock.model.columns import Columns

GroupOutcome = Literal["pending", "written", "synced", "failed"]


class StoredTopic(Protocol):
    """One topic: where it begins and ends, and what it holds.

    Readers see up to ``end_offset``; the next event gets ``next_offset``.
    """

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def options(self) -> TopicOptions: ...
    @property
    def committed(self) -> bool:
        """Whether the group that makes it is."""

    @property
    def going(self) -> bool:
        """Whether a group that is not committed yet deletes it."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    @property
    def bytes(self) -> int:
        """What its segments take."""

    @property
    def unwritten_bytes(self) -> int:
        """What is in memory on its way there."""

    def read(self, offset: int, max_bytes: int) -> list[Batch]: ...
    def whole_batches(
        self, offset: int, max_bytes: int, end: int = ...
    ) -> list[Batch]: ...
    def offset_at(self, timestamp_ms: int) -> int: ...


# Not frozen: one is made for every append, and freezing costs more than making it.
@dataclass(slots=True)
class Appended:
    """Where a batch went: offsets, and the group whose commit makes it durable."""

    topic: str
    base_offset: int
    count: int
    group: int
    _id_base: bytes
    """Of the first event."""
    _times: Sequence[int] | None = None
    """Of the events, if they differ: an id says that of its event."""

    def generated_id(self, index: int) -> str:
        """The id of event ``index`` of the batch, if its publisher gave none."""
        if self._times is not None:
            return ids.event_id_at(self._id_base, index, self._times[index])
        return ids.event_id(self._id_base, index)

    def generated_ids(self) -> list[str]:
        """Those of all events of the batch."""
        if self._times is not None:
            return ids.event_ids_at(self._id_base, range(self.count), self._times)
        return ids.event_ids(self._id_base, range(self.count))


@dataclass(slots=True)
class AppendedRows:
    """Where events of several topics went, each to the topic at its place."""

    group: int
    offsets: list[int]
    _topics: Sequence[StoredTopic]
    # Any: a mapping says exactly what its keys are.
    _low_ids: Mapping[Any, int]
    """From where the ids of a topic are counted."""
    _times: Sequence[int]

    def generated_id(self, index: int) -> str:
        """The id of event ``index``, if its publisher gave none."""
        low = self._low_ids[self._topics[index]] + self.offsets[index]
        return ids.text_of(self._times[index], low)

    def generated_ids(self) -> list[str]:
        """Those of all events."""
        return ids.texts_of(self._low_ids, self._topics, self.offsets, self._times)


class LonePart(Protocol):
    """What one topic has of rows, apart from what came with it."""

    @property
    def columns(self) -> Columns:
        """The events; not to be changed."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    def ids(self) -> list[str]: ...
    def frame(self) -> TailFrame:
        """Made when it is asked for."""


class SharedPart(Protocol):
    """What one topic has of rows."""

    def frame(self) -> TailFrame: ...
    def alone(self) -> LonePart: ...


class SharedRows(Protocol):
    """Small events of several topics, in the order in which they came."""

    @property
    def plain(self) -> bool:
        """Whether no event has a priority or a time at which it is delivered."""

    @property
    def parts(self) -> Sequence[tuple[StoredTopic, SharedPart]]: ...


class CommittedFrame(NamedTuple):
    """Events of one topic, and their columns if they are at hand."""

    topic: StoredTopic
    frame: TailFrame
    columns: Columns | None

    @property
    def batch(self) -> Batch:
        return Batch.whole(self.topic.name, *self.frame)


class GroupCommit(Protocol):
    """One group on its way to the journal. ``run`` may be called in any thread."""

    @property
    def number(self) -> int: ...
    @property
    def sync(self) -> bool: ...
    @property
    def error(self) -> WriteFailed | None: ...
    @property
    def doubt(self) -> InDoubt | None:
        """Set while in doubt: ``run`` it again later instead of ending it."""

    @property
    def blocks(self) -> bool:
        """Whether ``run`` may take long, and is for another thread."""

    @property
    def brief(self) -> bool:
        """Whether it then is one small write and one sync of a disk."""

    @property
    def size(self) -> int:
        """Its bytes, about."""

    def run(self) -> None: ...
    def counts(self) -> Iterator[tuple[StoredTopic, int, int]]:
        """Topics, and how many events and bytes each got; a topic may come again."""

    def contents(self) -> Sequence[CommittedFrame | SharedRows]:
        """Its events; what a topic has of them comes in the order of its offsets."""


class StoreWork(Protocol):
    """Work on segments: planned and ended by the log's owner, run in any thread."""

    @property
    def error(self) -> WriteFailed | None: ...
    def run(self) -> None: ...


class BrokerLog(Protocol):
    """The log under a broker. Its methods say more in ``penstock.log.Log``.

    ``begin_…`` and ``end_…`` belong to one thread, and so does everything else but the
    ``run`` of a commit or of a piece of work.
    """

    on_commit: Callable[[GroupCommit], None]
    on_close: Callable[[], None]

    @property
    def options(self) -> LogOptions: ...
    @property
    def files(self) -> FileSystem: ...
    @property
    def directory(self) -> str: ...
    def now_ms(self) -> int: ...

    # Topics

    @property
    def topic_count(self) -> int: ...
    @property
    def topics_made(self) -> int: ...
    def topics(self) -> list[str]: ...
    def each_topic(self) -> Iterator[StoredTopic]: ...
    def has_topic(self, name: str) -> bool: ...
    def find_topics(self, names: Iterable[str]) -> Mapping[str, StoredTopic]: ...
    def topic(self, name: str) -> StoredTopic: ...
    def topic_by_id(self, topic_id: int) -> StoredTopic | None: ...
    def create_topic(
        self, name: str, options: TopicOptions | None = None
    ) -> StoredTopic: ...
    def set_options(self, name: str, options: TopicOptions) -> None: ...
    def drop_topic(self, name: str, then: Callable[[], None]) -> int: ...

    # Appending, and what became of it

    @property
    def open_group(self) -> int: ...
    @property
    def written(self) -> int: ...
    @property
    def synced(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def syncs(self) -> int: ...
    @property
    def pending_bytes(self) -> int: ...
    @property
    def unwritten_bytes(self) -> int: ...
    @property
    def failure(self) -> WriteFailed | None: ...
    @property
    def doubt(self) -> InDoubt | None: ...
    def outcome(self, group: int) -> GroupOutcome: ...
    def touched(self) -> Collection[tuple[StoredTopic, int]]: ...
    def stood_at(self, name: str) -> int | None: ...
    def append(
        self,
        name: str,
        events: Columns | Batch,
        *,
        relaxed: bool = False,
        create: TopicOptions | None = None,
    ) -> Appended: ...
    def append_group(
        self,
        batches: Mapping[str, Columns | Batch],
        *,
        create: Mapping[str, TopicOptions] = ...,
    ) -> dict[str, Appended]: ...
    def append_rows(
        self,
        names: Sequence[str],
        events: Columns,
        *,
        relaxed: bool = False,
        create: Mapping[str, TopicOptions] = ...,
    ) -> AppendedRows: ...
    def append_large(
        self,
        batches: Sequence[tuple[str, Batch]],
        create: Callable[[str], TopicOptions] | None = None,
    ) -> list[Appended]: ...
    def record(self, kind: int, data: bytes) -> int: ...

    # Reading

    def read(self, name: str, offset: int, max_bytes: int = ...) -> list[Batch]: ...
    def offset_at(self, name: str, timestamp_ms: int) -> int: ...

    # Work

    def begin_commit(self, *, sync: bool | None = None) -> GroupCommit | None: ...
    def end_commit(self, commit: GroupCommit) -> WriteFailed | None: ...
    def begin_store(self) -> StoreWork | None: ...
    def end_store(self, work: StoreWork) -> None: ...
    def commit(self, *, sync: bool | None = None) -> int: ...
    def sync(self) -> int: ...
    def store(self) -> None: ...
    def checkpoint(self) -> None: ...
    def roll(self, name: str) -> None: ...
    def trim(self, name: str, offset: int) -> None: ...
    def compact(self, name: str) -> int: ...
    @property
    def checkpoint_wanted(self) -> bool: ...
    @property
    def wants_upkeep(self) -> bool: ...
    def maintain_soon(self) -> None: ...
    def begin_upkeep(self) -> StoreWork | None: ...
    def end_upkeep(self, work: StoreWork) -> None: ...
    def scrub(self, max_bytes: int) -> bool: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
