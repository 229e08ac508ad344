"""The journal in files of the data directory, which are used again.

A position counts the bytes of all groups since the journal began; file headers do
not count. Every file starts where its predecessor ends, so whatever a predecessor
holds at or behind its successor's start is void: that is how a group whose sync
failed is abandoned without trusting the disk to forget it. A file may end unsynced;
the next sync covers it first.

Crash promise: precious. A group that was synced is there after any crash; a tail
that was not is cut by recovery.

A sync takes half as long again when it has to note new blocks or a new length. So a
retired file is renamed and written over instead of being removed: its blocks are
written and its pages cached, and a disk that fills up can still be journalled to. A new
file gets zeros in front of small groups, as much as it holds already, within limits. A
group that is large pays for its own blocks: zeros would cost it more than they save.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from penstock.files import Buffer, FileSystem, write_error
from penstock.log.journal import group
from penstock.log.journal.header import HEADER_BYTES, encode_header
from penstock.log.journal.port import Securing
from penstock.log.journal.position import PositionFile, read_position
from penstock.log.journal.scan import JournalScan, first_position
from penstock.log.layout import JOURNAL_SUFFIX, SPARE_SUFFIX, Layout, numbered

logger = logging.getLogger(__name__)

# Retired files kept for reuse; more than one only after a burst.
MAX_SPARES = 2
# Zeros that a new file gets at a time; a group larger than the first gets none.
MIN_ZEROS_BYTES = 1 << 16
MAX_ZEROS_BYTES = 1 << 20


class _Ended(NamedTuple):
    """A file that ended before it was synced, and how much of it counts."""

    path: str
    length: int


class SyncFiles:
    """Syncs journal files that others may be writing, by handles of its own.

    The journal closes its handles when it likes. As long as one of them is open, the
    kernel keeps an error that no handle was told of for the next one. Only files that
    ended unsynced (not each group was synced) may have lost one.
    """

    def __init__(self, files: FileSystem, paths: Sequence[str]) -> None:
        self._files = files
        self._paths = paths
        self.doubtful: list[str] = []

    def run(self) -> None:
        for path in self._paths:
            handle = self._files.open(path, write=True)
            try:
                self._files.sync(handle)
            except OSError:
                self.doubtful.append(path)
                raise
            finally:
                self._files.close(handle)


class FileJournal:
    """A Journal (port.py) in files; nothing that it does is ever in doubt."""

    blocks = False  # what goes to the page cache takes less time than another thread

    def __init__(
        self,
        files: FileSystem,
        layout: Layout,
        *,
        file_bytes: int,
        entropy: Callable[[int], bytes],
    ) -> None:
        self._files = files
        self._layout = layout
        self._file_bytes = file_bytes
        self._entropy = entropy
        self._starts: list[int] = []
        self._spares: list[str] = []
        self._unsynced: list[_Ended] = []
        self._doubtful: set[str] = set()
        self._handle: int | None = None
        self._stamp = 0
        self._length = 0
        self._ready = 0
        """How much of the file has its blocks, groups included."""
        self._zeros = True
        """Whether there may be room for zeros."""
        self._scan: JournalScan | None = None
        self._position_file: PositionFile | None = None
        self.position = self.synced = 0
        self.syncs = 0

    # Opening

    @property
    def first(self) -> int | None:
        return first_position(self._files, self._layout)

    def read(self, position: int) -> JournalScan:
        self._remove_spares()
        attested = read_position(self._files, self._layout.position) or 0
        self._scan = JournalScan(self._files, self._layout, position, attested=attested)
        return self._scan

    def begin(self) -> None:
        """Sync all that was found good, and cut the rest off."""
        scan, self._scan = self._scan, None
        assert scan is not None, "read before"
        lengths = {} if scan.last_file is None else dict([scan.last_file])
        for name in scan.files:
            path = os.path.join(self._layout.directory, name)
            self._cut(path, lengths.get(name))
        self._remove_void_files(scan.end)
        self._cut_voided(scan.end)
        self._starts = [start for start in self._present() if start < scan.end]
        self.position = self.synced = scan.end
        self._position_file = PositionFile(self._files, self._layout.position)
        self._position_file.publish(scan.end)

    def _remove_spares(self) -> None:
        """What a crash left of files that were to be used again, or replaced."""
        for name in self._files.list(self._layout.journal):
            if name.endswith((".tmp", SPARE_SUFFIX)):
                self._files.remove(os.path.join(self._layout.journal, name))

    def _present(self) -> list[int]:
        return numbered(self._files.list(self._layout.journal), JOURNAL_SUFFIX)

    def _cut(self, path: str, length: int | None) -> None:
        handle = self._files.open(path, write=True)
        try:
            if length is not None and self._files.size(handle) > length:
                self._files.truncate(handle, length)
            self._files.sync(handle)
        finally:
            self._files.close(handle)

    def _remove_void_files(self, end: int) -> None:
        """Files behind a cut hold nothing that was confirmed, and must not count."""
        void = [start for start in self._present() if start > end]
        for start in void:
            self._files.remove(self._layout.journal_file(start))
        if void:
            self._files.sync_directory(self._layout.journal)

    def _cut_voided(self, end: int) -> None:
        """Cut off what only a file without groups hides in the one before it.

        A file that starts at the end is made anew: while it is not there, a group that
        was not found now would come back.
        """
        starts = self._present()
        if end in starts[1:]:
            before = starts[starts.index(end) - 1]
            length = HEADER_BYTES + end - before
            self._cut(self._layout.journal_file(before), length)

    # Writing

    def is_brief(self, size: int) -> bool:
        """Whether such a group finds its blocks in a file that is open."""
        return (
            self._handle is not None
            and size <= MIN_ZEROS_BYTES
            and self._length + size <= self._ready
            and not (self._unsynced or self._doubtful)
        )

    def append(
        self,
        number: int,
        entries: Sequence[group.JournalEntry],
        time_ms: int,
        *,
        sync: bool,
    ) -> None:
        """Write one group, and sync it if asked.

        Raises WriteFailed (DiskFull): then the group is not in the journal.
        """
        size = _size(entries)
        self._make_sure()
        if self._handle is None or self._length + size > self._file_bytes:
            self._roll(time_ms)
        self._make_ready(size)
        buffers = group.encode(
            entries,
            position=self.position,
            synced=self.synced,
            stamp=self._stamp,
            number=number,
            time_ms=time_ms,
        )
        self._write(buffers)
        if sync:
            try:
                self._sync()
            except BaseException:
                self._void()
                raise
        self.position += size
        self._length += size
        if sync:
            self._note_synced()

    def sync(self) -> None:
        """Sync what was written without; raises WriteFailed."""
        self._make_sure()
        if self.synced < self.position:
            self._sync()
        self._note_synced()

    def settle(self) -> None:
        raise AssertionError("what goes to a file is done or failed")

    def _note_synced(self) -> None:
        self.synced = self.position
        if self._position_file is not None:
            self._position_file.publish(self.synced)

    def retire(self, position: int) -> None:
        """Give up files that lie wholly before ``position``; some are used again."""
        while len(self._starts) > 1 and self._starts[1] <= position:
            path = self._layout.journal_file(self._starts.pop(0))
            self._unsynced = [one for one in self._unsynced if one.path != path]
            if len(self._spares) < MAX_SPARES:
                # Under a name of its own, or the journal would seem to begin there.
                spare = path.removesuffix(JOURNAL_SUFFIX) + SPARE_SUFFIX
                self._files.rename(path, spare)
                self._spares.append(spare)
            else:
                self._files.remove(path)

    def unsynced_files(self) -> list[str]:
        """Files that hold groups which were written and not synced."""
        paths = [one.path for one in self._unsynced]
        if self._handle is not None and self.synced < self.position:
            paths.append(self._name())
        return paths

    def secure(self) -> SyncFiles:
        return SyncFiles(self._files, self.unsynced_files())

    def secured(self, securing: Securing) -> None:
        """Remember files whose sync failed there; see ``_make_sure``."""
        assert isinstance(securing, SyncFiles)
        self._doubtful.update(securing.doubtful)

    def close(self) -> None:
        """Cut the file to what it holds and give it back; unsynced bytes stay so."""
        if self._handle is not None:
            self._cut_off()
        self._let_go()
        for path in self._spares:
            self._files.remove(path)
        self._spares.clear()

    def abandon(self) -> None:
        """Let the files go as they are, as after a crash."""
        self._let_go()
        if self._position_file is not None:
            self._position_file.close()
            self._position_file = None

    def _write(self, buffers: Sequence[Buffer]) -> None:
        assert self._handle is not None
        try:
            self._files.write(self._handle, buffers, self._length)
        except OSError as error:
            self._void()
            raise write_error(self._name(), "writing", error) from error

    def _sync(self) -> None:
        """Sync the files that ended unsynced, oldest first, then the current one."""
        while self._unsynced:
            self._sync_ended(self._unsynced[0])
            del self._unsynced[0]
        if self._handle is None:
            return
        try:
            self._files.sync(self._handle)
        except OSError as error:
            self._doubtful.add(self._name())
            raise write_error(self._name(), "syncing", error) from error
        self.syncs += 1

    def _sync_ended(self, ended: _Ended) -> None:
        handle = None
        try:
            handle = self._files.open(ended.path, write=True)
            if ended.path in self._doubtful:
                self._write_again(handle, HEADER_BYTES, ended.length)
            self._files.sync(handle)
        except OSError as error:
            self._doubtful.add(ended.path)
            raise write_error(ended.path, "syncing", error) from error
        finally:
            if handle is not None:
                self._files.close(handle)
        self._doubtful.discard(ended.path)

    def _make_sure(self) -> None:
        """After a failed sync of the current file: end it, and sync it anew.

        The kernel may drop the dirty pages of a failed sync and report success next
        time: what was written but not synced has to be written again.
        """
        if not self._doubtful:
            return
        if self._starts and self._name() in self._doubtful:
            self._end_file()
        self._sync()
        self._doubtful.clear()
        self.synced = self.position

    def _write_again(self, handle: int, start: int, end: int) -> None:
        data = self._files.read(handle, end - start, start)
        if not self._holds_groups(data, end - start):
            raise OSError(errno.EIO, "the disk lost what it had taken")
        self._files.write(handle, [data], start)

    def _end_file(self) -> None:
        """Let the current file go; remember it if it has to be synced yet."""
        if self._handle is None:
            return
        if self.synced < self.position:
            self._unsynced.append(_Ended(self._name(), self._length))
        else:
            self._doubtful.discard(self._name())
        self._let_go()

    def _holds_groups(self, data: bytes, length: int) -> bool:
        """Whether ``data`` is nothing but ``length`` bytes of intact groups."""
        block, at = memoryview(data), 0
        while at < length:
            header = group.peek(block, at)
            if header is None or not group.intact(block, at, header):
                return False
            at += header.length
        return at == length

    def _void(self) -> None:
        """Take back a group that failed, or end the file in front of it."""
        if self._handle is None:
            return
        self._zeros = False
        try:
            self._cut_off()
        except OSError:
            self._end_file()

    def _cut_off(self) -> None:
        """Have the file end behind its last group."""
        assert self._handle is not None
        self._files.truncate(self._handle, self._length)
        self._ready = self._length

    def _make_ready(self, size: int) -> None:
        """Have blocks for the next group, and for some that come after it."""
        assert self._handle is not None
        start = self._length + size
        if start <= self._ready or size > MIN_ZEROS_BYTES or not self._zeros:
            return
        more = min(max(self._length, MIN_ZEROS_BYTES), MAX_ZEROS_BYTES)
        end = min(start + more, self._file_bytes)
        # Groups that brought none may reach beyond the last zeros.
        begin = max(self._ready, self._length)
        if begin >= end:
            return
        try:
            self._files.write(self._handle, [bytes(end - begin)], begin)
        except OSError as error:
            self._do_without_zeros(error)
        else:
            self._ready = end

    def _do_without_zeros(self, error: OSError) -> None:
        """The disk is full, or nearly: what room there is is for groups."""
        self._zeros = False
        logger.info(
            "no room for the next groups beforehand, each has to find its own: %s",
            error,
            extra={"action": "journal_not_prepared"},
        )
        with suppress(OSError):  # they are zeros
            self._cut_off()

    def _roll(self, time_ms: int) -> None:
        """Begin the file that starts at the current position."""
        path = self._layout.journal_file(self.position)
        self._end_file()
        try:
            recycled = self._claim(path)
            handle = self._files.open(path, write=True, create=True)
            self._handle = handle
            stamp = int.from_bytes(self._entropy(8), "little")
            head = encode_header(
                self.position, stamp, time_ms, synced=self.synced, recycled=recycled
            )
            self._files.write(handle, [head], 0)
            self._ready = self._files.size(handle)
            self._files.sync(handle)
            self._files.sync_directory(self._layout.journal)
        except OSError as error:
            self._let_go()
            raise write_error(path, "starting journal file", error) from error
        self._stamp, self._length, self._zeros = stamp, HEADER_BYTES, True
        if self.position not in self._starts:
            self._starts.append(self.position)
        logger.info(
            "journal file begins at %s",
            self.position,
            extra={"action": "journal_rolled", "position": self.position},
        )

    def _claim(self, path: str) -> bool:
        """Make way for a new file at ``path``; True if an old one now stands there."""
        if self._files.exists(path):
            # Only a file none of whose groups was confirmed can have this start.
            self._files.remove(path)
        if not self._spares:
            return False
        self._files.rename(self._spares.pop(), path)
        return True

    def _let_go(self) -> None:
        if self._handle is not None:
            self._files.close(self._handle)
            self._handle = None

    def _name(self) -> str:
        return self._layout.journal_file(self._starts[-1])


def _size(entries: Sequence[group.JournalEntry]) -> int:
    return group.HEADER_BYTES + sum(
        group.ENTRY.size + entry.size + -entry.size % 8 for entry in entries
    )
