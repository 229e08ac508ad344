"""Reading a data directory from another process, while its writer lives or not.

A reader sees what is synced, never more: segments up to the lengths of the last
checkpoint, and the journal behind it up to the published position. It takes no lock
and writes nothing. ``refresh`` follows a living log.

When no process writes the directory, the journal may hold good groups behind the
published position, written but not synced before a crash. The reader syncs them
itself before it shows them: the next writer will keep them.

The writer may remove, recycle or compact files at any time. What a reader then finds
does not verify, so it looks at the newest checkpoint and tries again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self, TypeVar

import msgspec

from penstock.errors import InvalidBatch, Moved, NotADataDirectory
from penstock.files import Files, FileSystem, write_error
from penstock.log import checkpoint as checkpoints
from penstock.log import frame
from penstock.log.batch import Batch
from penstock.log.catalog import Catalog
from penstock.log.checkpoint import TopicRecord
from penstock.log.cutting import forget_before, forget_behind, length_behind
from penstock.log.damage import Damage
from penstock.log.frame import FrameHeader
from penstock.log.journal.group import EntryKind, JournalEntry, cut_in, start_in
from penstock.log.journal.position import read_position
from penstock.log.journal.scan import FoundGroup, JournalScan, first_position
from penstock.log.layout import Layout
from penstock.log.lock import is_held
from penstock.log.rebuild import find_topic
from penstock.log.rows import RowsPart, head_bytes, parts_of, table_of
from penstock.log.tail import TailFrame, TailPart
from penstock.log.topic import TopicLog

T = TypeVar("T")

DEFAULT_READ_BYTES = 1 << 20
_CANNOT_SYNC = frozenset({errno.EROFS, errno.EINVAL, errno.EBADF, errno.EACCES})
# A writer that checkpoints faster than this reader can look is not to be caught.
_TRIES = 10


# Entries of the journal that are kept decoded, by their bytes.
CACHED_ROWS_BYTES = 1 << 24


class EntryPlace(NamedTuple):
    """Where the data of an entry lies in the journal."""

    path: str
    position: int
    length: int

    def read(self, files: FileSystem) -> memoryview:
        """What is there now; raises Moved if the file is gone."""
        try:
            handle = files.open(self.path)
        except FileNotFoundError:
            raise Moved(self.path) from None
        try:
            return memoryview(files.read(handle, self.length, self.position))
        finally:
            files.close(handle)


class FrameInJournal:
    """A frame as it lies in the journal; its bytes are read when they are asked for."""

    __slots__ = ("_files", "_header", "_place")

    def __init__(
        self, files: FileSystem, header: FrameHeader, place: EntryPlace
    ) -> None:
        self._files = files
        self._header = header
        self._place = place

    @property
    def base_offset(self) -> int:
        return self._header.base_offset

    @property
    def end_offset(self) -> int:
        return self._header.end_offset

    @property
    def events(self) -> int:
        return self._header.events

    @property
    def latest_ms(self) -> int:
        return self._header.max_timestamp_ms

    @property
    def size(self) -> int:
        return self._header.length

    def frame(self) -> TailFrame:
        header, view = self._header, self._place.read(self._files)
        if frame.peek(view, 0) != header or not frame.intact(view, 0, header):
            raise Moved(self._place.path)
        return TailFrame(header, view[frame.HEADER_BYTES :])


class RowsInJournal:
    """What an entry holds of one topic; read when it is asked for, with the others."""

    __slots__ = (
        *("_place", "_rows", "_topic_id", "base_offset", "end_offset", "events"),
        *("latest_ms", "size"),
    )

    def __init__(
        self,
        rows: RowsCache,
        place: EntryPlace,
        event_bytes: int,
        topic_id: int,
        base_offset: int,
        events: int,
        latest_ms: int,
    ) -> None:
        self._rows = rows
        self._place = place
        self._topic_id = topic_id
        self.base_offset = base_offset
        self.end_offset = base_offset + events
        self.events = events
        self.latest_ms = latest_ms
        self.size = event_bytes * events

    def frame(self) -> TailFrame:
        part = self._rows.of(self._place).get(self._topic_id)
        if part is None or part.base_offset != self.base_offset:
            raise Moved(self._place.path)
        return part.frame()


class RowsCache:
    """The rows of entries that were read lately, by their places."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._bytes = 0
        self._parts: OrderedDict[EntryPlace, dict[int, RowsPart]] = OrderedDict()

    def of(self, place: EntryPlace) -> dict[int, RowsPart]:
        """The parts of an entry by the id of their topic; raises Moved."""
        found = self._parts.get(place)
        if found is None:
            try:
                found = dict(parts_of(place.read(self._files)))
            except InvalidBatch:
                raise Moved(place.path) from None
            self._parts[place] = found
            self._bytes += place.length
            while self._bytes > CACHED_ROWS_BYTES and len(self._parts) > 1:
                self._bytes -= self._parts.popitem(last=False)[0].length
        return found


class Reader:
    """Open with ``Reader.open``; close it, or use it as a context manager."""

    def __init__(self, layout: Layout, files: FileSystem) -> None:
        self._layout = layout
        self._files = files
        self._checkpoint: int | None = None
        self._catalog = Catalog(files, layout, self._found)
        self._rows = RowsCache(files)
        self._suspicions: list[Damage] = []
        self.damages: list[Damage] = []
        self.synced_position = 0
        self._settled(self._load)

    @classmethod
    def open(
        cls, directory: str | os.PathLike[str], *, files: FileSystem | None = None
    ) -> Self:
        """Raises NotADataDirectory."""
        layout = Layout(os.path.abspath(directory))
        disk = files or Files()
        if not disk.exists(layout.journal) or not disk.exists(layout.topics):
            raise NotADataDirectory(layout.directory)
        return cls(layout, disk)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def directory(self) -> str:
        return self._layout.directory

    def close(self) -> None:
        self._catalog.close()

    def topics(self) -> list[str]:
        return sorted(topic.name for topic in self._catalog)

    def topic(self, name: str) -> TopicLog:
        """The topic of that name; raises UnknownTopic."""
        return self._catalog.get(name)

    def read(
        self, name: str, offset: int, max_bytes: int = DEFAULT_READ_BYTES
    ) -> list[Batch]:
        """Synced batches from ``offset`` on; empty at the end as of ``refresh``."""
        return self._settled(lambda: self.topic(name).read(offset, max_bytes))

    def batches(
        self, name: str, offset: int, max_bytes: int = DEFAULT_READ_BYTES
    ) -> Iterator[Batch]:
        """All of them, one after the other, ``max_bytes`` read at a time.

        A block goes when its batches do, before the next is read: so the same memory,
        still in the processor's caches, takes all of them.
        """
        while found := self.read(name, offset, max_bytes):
            offset = found[-1].end_offset
            found.reverse()
            while found:
                yield found.pop()

    def offset_at(self, name: str, timestamp_ms: int) -> int:
        """The first offset with that timestamp or a later one; the end if none."""
        return self._settled(lambda: self.topic(name).offset_at(timestamp_ms))

    def refresh(self) -> bool:
        """Take note of what was synced since; True if there is anything new."""
        before = self.synced_position
        if self._newest_checkpoint() != self._checkpoint or not self._followed():
            self._settled(self._load)
        return self.synced_position != before

    def _followed(self) -> bool:
        """Take up what is new; False if everything should be looked at anew."""
        self._suspicions.clear()
        try:
            self._follow()
        except (Moved, FileNotFoundError):
            return False
        return not self._suspicions

    def _settled(self, look: Callable[[], T]) -> T:
        """The result of ``look``, after looking again while the writer moves."""
        for _ in range(_TRIES):
            self._suspicions.clear()
            try:
                result = look()
            except (Moved, FileNotFoundError):
                self._reload()
                continue
            if not self._suspicions:
                return result
            if self._known(self._suspicions):
                return result
            suspicions = list(self._suspicions)
            self._reload()
            self._suspicions.clear()
            with contextlib.suppress(Moved, FileNotFoundError):
                result = look()
                if self._suspicions == suspicions:
                    self._confirm(suspicions)
                    return result
        raise Moved(self.directory)

    def _reload(self) -> None:
        with contextlib.suppress(Moved, FileNotFoundError):
            self._load()

    def _found(self, damage: Damage) -> None:
        self._suspicions.append(damage)

    def _known(self, damages: list[Damage]) -> bool:
        return all(damage in self.damages for damage in damages)

    def _confirm(self, damages: list[Damage]) -> None:
        self.damages += [one for one in damages if one not in self.damages]

    def _newest_checkpoint(self) -> int | None:
        present = checkpoints.positions(self._files, self._layout)
        return present[-1] if present else None

    def _load(self) -> None:
        """Everything anew from the newest checkpoint, or all as it was."""
        before = self._catalog, self._checkpoint, self.synced_position
        self._catalog = Catalog(self._files, self._layout, self._found)
        try:
            self._fill()
        except BaseException:
            self._catalog.close()
            self._catalog, self._checkpoint, self.synced_position = before
            raise
        before[0].close()

    def _fill(self) -> None:
        newest = self._newest_checkpoint()
        checkpoint, damages = checkpoints.load_newest(self._files, self._layout)
        self._suspicions += damages
        if checkpoint is None:
            start = self._find_topics()
        else:
            start = checkpoint.position
            for record in checkpoint.topics:
                self._add(record)
        self._checkpoint = newest
        self.synced_position = start
        self._follow()

    def _find_topics(self) -> int:
        """No checkpoint: a whole journal, or what the segments show."""
        names = self._files.list(self._layout.topics)
        start = first_position(self._files, self._layout)
        if start != 0:
            for name in names:
                folder = os.path.join(self._layout.topics, name)
                record = find_topic(self._files, self._layout, folder, self._found)
                if record is not None:
                    self._add(record)
        return start or 0

    def _add(self, record: TopicRecord) -> TopicLog:
        return self._catalog.adopt(record)

    def _follow(self) -> None:
        """Take up what the journal says since the last look."""
        position = read_position(self._files, self._layout.position)
        limit = position or 0 if is_held(self._layout.lock) else None
        start = self.synced_position
        if limit is not None and limit <= start:
            return
        scan = JournalScan(
            self._files, self._layout, start, attested=position or 0, limit=limit
        )
        found = list(self._entries(scan))
        if limit is not None and scan.end < limit:
            raise Moved(self._layout.journal)
        if limit is None:
            for name in scan.files:
                self._sync(name)
        for entry, place in found:
            self._apply(entry, place)
        self._suspicions += scan.damages
        self.synced_position = scan.end

    def _entries(self, scan: JournalScan) -> Iterator[tuple[JournalEntry, EntryPlace]]:
        for one in scan.groups():
            for entry, place in _placed(one, self._layout.directory):
                # Only the header of a frame is kept: the block may be large.
                size = len(entry.data)
                if entry.kind == EntryKind.EVENTS:
                    size = frame.HEADER_BYTES
                elif entry.kind == EntryKind.ROWS:
                    size = head_bytes(entry.data)
                yield entry._replace(data=bytes(entry.data[:size])), place

    def _sync(self, name: str) -> None:
        handle = self._files.open(os.path.join(self._layout.directory, name))
        try:
            self._files.sync(handle)
        except OSError as error:
            # A file system that is read-only has nothing that waits for a disk.
            if error.errno not in _CANNOT_SYNC:
                raise write_error(name, "syncing", error) from error
        finally:
            self._files.close(handle)

    def _apply(self, entry: JournalEntry, place: EntryPlace) -> None:
        if entry.kind == EntryKind.TOPIC:
            record = msgspec.json.decode(entry.data, type=TopicRecord)
            known = self._catalog.by_id(record.id)
            if known is None:
                self._add(record)
            else:
                self._catalog.set_options(known, record.options)
            return
        if entry.kind == EntryKind.ROWS:
            self._share(entry, place)
            return
        topic = self._catalog.by_id(entry.topic)
        if topic is None:
            return
        match entry.kind:
            case EntryKind.EVENTS:
                self._extend(topic, entry, place)
            case EntryKind.START:
                forget_before(topic, start_in(entry))
            case EntryKind.TRUNCATE:
                cut, end = cut_in(entry)
                topic.tail.cut(cut)
                length = length_behind(topic, cut)
                forget_behind(topic, self._catalog.segment_cache, cut, end, length)
            case EntryKind.DELETE:
                self._catalog.remove(topic)

    def _extend(self, topic: TopicLog, entry: JournalEntry, place: EntryPlace) -> None:
        header = frame.peek(entry.data, 0)
        assert header is not None, "an intact group holds good frames"
        self._append(topic, FrameInJournal(self._files, header, place))

    def _share(self, entry: JournalEntry, place: EntryPlace) -> None:
        rows = table_of(entry.data)
        each = place.length // sum(row[2] for row in rows)
        for *row, _ in rows:
            topic = self._catalog.by_id(row[0])
            if topic is not None:
                self._append(topic, RowsInJournal(self._rows, place, each, *row))

    def _append(self, topic: TopicLog, part: TailPart) -> None:
        if part.end_offset > topic.end_offset:
            topic.tail.append(part)
            topic.end_offset = part.end_offset


def _placed(
    found: FoundGroup, directory: str
) -> Iterator[tuple[JournalEntry, EntryPlace]]:
    """The entries of a group with the places of their data."""
    path = os.path.join(directory, found.file)
    for entry, offset in found.placed_entries():
        position = found.file_position + offset
        yield entry, EntryPlace(path, position, len(entry.data))
