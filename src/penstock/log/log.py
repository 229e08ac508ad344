"""The log: topics of events in one data directory, durable, with one writer.

Crash promise: whatever ``sync`` returned for is there after any crash, once and in
order; whatever it did not return for is there as a prefix, or not at all.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Self

import msgspec

from penstock.clock import Clock, SystemClock
from penstock.errors import (
    Backlogged,
    BeingDeleted,
    InDoubt,
    InvalidBatch,
    InvalidOption,
    NotADataDirectory,
    TopicExists,
)
from penstock.files import Files, FileSystem, access_for, make_directories
from penstock.log import housekeeping
from penstock.log.batch import Batch
from penstock.log.checkpoint import TopicRecord
from penstock.log.core import LogCore
from penstock.log.intake import checked_size
from penstock.log.interface import Appended, AppendedRows
from penstock.log.journal import FIRST_OWNED, LAST_OWNED, EntryKind, Journal
from penstock.log.layout import Layout
from penstock.log.lock import DirectoryLock
from penstock.log.options import MAX_GROUP_BYTES, LogOptions, TopicOptions
from penstock.log.owner import Owner
from penstock.log.topic import TopicLog
from penstock.model import ids
from penstock.model.columns import MAX_BATCH_BYTES, Columns
from penstock.model.topic import topic_name

logger = logging.getLogger(__name__)

DEFAULT_READ_BYTES = 1 << 20


class Log(LogCore):
    """Open with ``Log.open``; close it, or use it as a context manager."""

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        options: LogOptions | None = None,
        *,
        create: bool = True,
        owners: Mapping[int, Owner] | None = None,
        files: FileSystem | None = None,
        clock: Clock | None = None,
        entropy: Callable[[int], bytes] | None = None,
        role: str = "",
        journal: Journal | None = None,
    ) -> Self:
        """Open a data directory for writing and recover what it holds.

        ``role`` is what others read in the lock file of this process; ``journal`` is
        where groups are kept, if not in files of the directory. Raises DirectoryLocked
        if another process writes it.
        """
        layout = Layout(os.path.abspath(directory))
        options = options or LogOptions()
        own = Files(access_for(options.group))
        disk = files or own
        if not create and not disk.exists(layout.journal):
            raise NotADataDirectory(layout.directory)
        for path in (layout.checkpoints, layout.journal, layout.topics):
            make_directories(disk, path)
        lock = DirectoryLock(layout.lock, own, role) if files is None else None
        try:
            if lock is not None:
                _secure(own, layout)
            return cls(
                layout,
                options,
                files=disk,
                clock=clock or SystemClock(),
                entropy=entropy or ids.Entropy(),
                owners=owners or {},
                lock=lock,
                journal=journal,
            )
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Topics

    def topics(self) -> list[str]:
        return sorted(topic.name for topic in self.catalog)

    @property
    def topic_count(self) -> int:
        return len(self.catalog)

    @property
    def topics_made(self) -> int:
        """Grows with every topic that is made: whether there may be other names."""
        return self.catalog.next_id

    def each_topic(self) -> Iterator[TopicLog]:
        return iter(self.catalog)

    def has_topic(self, name: str) -> bool:
        return name in self.catalog

    def find_topics(self, names: Iterable[str]) -> dict[str, TopicLog]:
        """Those of some topics that there are, by name."""
        return self.catalog.find(names)

    def topic(self, name: str) -> TopicLog:
        """The topic of that name; raises UnknownTopic."""
        return self.catalog.get(name)

    def topic_by_id(self, topic_id: int) -> TopicLog | None:
        return self.catalog.by_id(topic_id)

    def create_topic(self, name: str, options: TopicOptions | None = None) -> TopicLog:
        """Create a topic; it is durable with the group that is open now."""
        self.check_writer()
        if name in self.catalog:
            self._there(name)
            raise TopicExists(name)
        self._check_topics(1)
        record = TopicRecord(
            id=self.catalog.next_id,
            name=topic_name(name),
            options=options or TopicOptions(),
        )
        topic = self.catalog.add(record)
        topic.committed = False
        self.intake.enter(EntryKind.TOPIC, topic.id, msgspec.json.encode(record))
        self.intake.group.undo.append(lambda: self.catalog.remove(topic))
        self.intake.group.then.append(lambda: setattr(topic, "committed", True))
        return topic

    def _check_topics(self, more: int) -> None:
        """Whether there may be so many more; raises InvalidOption."""
        most, there = self.options.max_topics, len(self.catalog)
        if there + more > most:
            what = "one more topic" if more == 1 else f"{more} more topics"
            limit = f"at least {there + more} for {what}"
            raise InvalidOption("max_topics", most, limit)

    def set_options(self, name: str, options: TopicOptions) -> None:
        """Change a topic's settings, from the commit of the open group on."""
        self.check_writer()
        topic = self._there(name)
        record = TopicRecord(id=topic.id, name=topic.name, options=options)
        self.intake.enter(EntryKind.TOPIC, topic.id, msgspec.json.encode(record))
        self.intake.group.then.append(lambda: self.catalog.set_options(topic, options))

    # Appending

    def append(
        self,
        name: str,
        events: Columns | Batch,
        *,
        relaxed: bool = False,
        create: TopicOptions | None = None,
    ) -> Appended:
        """Add events to a topic; they count when their group is committed.

        The bytes of a Batch are not copied: they must not change until then.
        ``relaxed``: it is not promised that they are on disk, whatever the topic says.
        ``create``: make the topic with these options, if the events can be stored.

        Raises UnknownTopic, InvalidBatch, Backlogged, or DiskFull while events
        from before cannot be written out.
        """
        self.check_writer()
        topic = self._there(name) if create is None else None
        self._make_room(checked_size(events, self.options.max_event_bytes))
        if topic is None:
            topic = self.create_topic(name, create)
        return self.intake.append(topic, events, relaxed=relaxed)

    def append_group(
        self,
        batches: Mapping[str, Columns | Batch],
        *,
        create: Mapping[str, TopicOptions] = MappingProxyType({}),
    ) -> dict[str, Appended]:
        """Add events to several topics: all of them are stored, or none is.

        ``create``: topics to be made, if all of the events can be stored.
        """
        self.check_writer()
        limit = self.options.max_event_bytes
        size = 0
        for name, events in batches.items():
            if name not in create:
                self._there(name)
            size += checked_size(events, limit)
        self._make_room(size)
        for name, options in create.items():
            self.create_topic(name, options)
        return {
            name: self.intake.append(self.catalog.get(name), events)
            for name, events in batches.items()
        }

    def append_rows(
        self,
        names: Sequence[str],
        events: Columns,
        *,
        relaxed: bool = False,
        create: Mapping[str, TopicOptions] = MappingProxyType({}),
    ) -> AppendedRows:
        """Add events, each to the topic at its place: all are stored, or none is.

        It costs what the events cost, however many topics there are. ``relaxed`` and
        ``create`` as above; raises what ``append`` raises, and InvalidOption for more
        topics than there may be.
        """
        self.check_writer()
        once = dict.fromkeys(names)
        topics = self.catalog.find(once)
        going = any([topic.going for topic in topics.values()])
        if going or len(topics) < len(once):
            for name in once:
                if name not in create:
                    self._there(name)
        if len(names) != len(events):
            raise InvalidBatch("number of topics", len(names), f"{len(events)}")
        self._check_topics(len(create))
        self._make_room(checked_size(events, self.options.max_event_bytes))
        for name, options in create.items():
            topics[name] = self.create_topic(name, options)
        rows = list(map(topics.__getitem__, names))
        return self.intake.append_rows(rows, events, relaxed=relaxed)

    def append_large(
        self,
        batches: Sequence[tuple[str, Batch]],
        create: Callable[[str], TopicOptions] | None = None,
    ) -> list[Appended]:
        """Add batches to one group, however much they are: all of them, or none.

        Up to MAX_GROUP_BYTES they go into the open group, whatever waits there.
        Topics that are not there are made with the options that ``create`` has for
        their names.
        Raises UnknownTopic, InvalidName, InvalidBatch, Backlogged, DiskFull.
        """
        self.check_writer()
        size = sum(checked_size(one, MAX_BATCH_BYTES) for _, one in batches)
        if size > MAX_GROUP_BYTES:
            raise InvalidBatch("group size", size, f"at most {MAX_GROUP_BYTES}")
        for name in dict(batches):
            if create is None or name in self.catalog:
                self._there(name)
            topic_name(name)
        self._make_room(size, MAX_GROUP_BYTES)
        for name in dict(batches):
            if name not in self.catalog:
                assert create is not None, "looked for above"
                self.create_topic(name, create(name))
        return [
            self.intake.append(self.catalog.get(name), batch) for name, batch in batches
        ]

    def record(self, kind: int, data: bytes) -> int:
        """Journal a record for the owner of ``kind``; the group that carries it."""
        self.check_writer()
        if not FIRST_OWNED <= kind <= LAST_OWNED:
            raise InvalidBatch("kind", kind, f"from {FIRST_OWNED} to {LAST_OWNED}")
        if kind not in self._owners:
            raise InvalidBatch("kind", kind, "one that has an owner")
        self._make_room(len(data))
        return self.intake.enter(kind, 0, data)

    def _there(self, name: str) -> TopicLog:
        """The topic of that name; raises UnknownTopic, BeingDeleted."""
        topic = self.catalog.get(name)
        if topic.going:
            raise BeingDeleted(name)
        return topic

    def _make_room(self, size: int, most: int = 0) -> None:
        """Commit a group that would grow too large; refuse if that cannot be.

        ``most``: how large it may grow, if that is not as the settings say.
        """
        if self.flusher.error is not None and self.flusher.idle:
            self.store()  # perhaps there is room again
        self.flusher.check_room()
        limit, waiting = most or self.options.group_bytes, self.intake.group.size
        if not waiting or waiting + size <= limit:
            return
        if self.intake.idle and self.flusher.idle and not self.intake.journal.blocks:
            with suppress(InDoubt):  # there is room all the same
                self.commit()
        elif waiting + size > 2 * limit:
            raise Backlogged(waiting, 2 * limit)

    # Reading

    def read(
        self, name: str, offset: int, max_bytes: int = DEFAULT_READ_BYTES
    ) -> list[Batch]:
        """Committed batches from ``offset`` on; empty at the end of the topic.

        About ``max_bytes``, but at least one batch. Raises OffsetOutOfRange.
        """
        self.check_open()
        return self.catalog.get(name).read(offset, max_bytes)

    def offset_at(self, name: str, timestamp_ms: int) -> int:
        """The first offset with that timestamp or a later one; the end if none."""
        self.check_open()
        return self.catalog.get(name).offset_at(timestamp_ms)

    # Housekeeping: each is done and durable when it returns, and needs an idle log

    def delete_topic(self, name: str) -> None:
        """Remove a topic and all its events."""
        housekeeping.delete(self, self.topic(name))

    def truncate(self, name: str, offset: int) -> None:
        """Forget the events from ``offset`` on; the next event gets that offset."""
        housekeeping.truncate(self, self.topic(name), offset)

    def trim(self, name: str, offset: int) -> None:
        """Forget the events in front of ``offset``."""
        housekeeping.trim(self, self.topic(name), offset)

    def roll(self, name: str) -> None:
        """Seal the active segment of a topic and begin another."""
        housekeeping.roll(self, [self.topic(name)])

    def compact(self, name: str) -> int:
        """Keep the last event of each key, and those without; bytes set free."""
        return housekeeping.compact(self, self.topic(name))

    def maintain(self) -> int:
        """Roll, retain and compact all topics as their options say; bytes set free."""
        return housekeeping.maintain(self)

    # The same while the log is at work: begun here, and done by the pump

    @property
    def wants_upkeep(self) -> bool:
        """Whether there is a topic that a round of ``maintain`` would look at."""
        return bool(self.catalog.kept_up) or housekeeping.may_gather(self)

    def maintain_soon(self) -> None:
        """Have a round of ``maintain`` done, unless one is under way."""
        self.go_through(housekeeping.maintenance(self))

    def drop_topic(self, name: str, then: Callable[[], None]) -> int:
        """Remove a topic with the open group, whose number this is.

        From now on the topic takes no events. ``then`` is called when it is gone for
        good; its files go after that.
        """
        self.check_writer()
        return housekeeping.drop(self, self._there(name), then)


def _secure(files: Files, layout: Layout) -> None:
    """Close the directory to others, also one that an earlier version made."""
    left = files.secure(layout.directory, layout.names)
    if left:
        logger.warning(
            "others may read %s, and %d files in all: they belong to another user",
            left[0],
            len(left),
            extra={"action": "data_open_to_others", "path": left[0]},
        )
