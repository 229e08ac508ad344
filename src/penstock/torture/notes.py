"""What a server has written and not synced, noted where a kill does not reach it.

The child notes each write of the log before it happens and each sync when it is done,
in a piece of memory that is shared through a file. So the parent that killed the child
knows what a loss of power could have taken.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from penstock.files import Buffer, Files

# How many there are; then number of the file, position and length.
_COUNT = struct.Struct("q")
_NOTE = struct.Struct("qqq")
ROOM = _COUNT.size + 300_000 * _NOTE.size
# In place of a length.
_SYNCED, _MADE, _ALL_SYNCED = -1, -2, -3


class WrittenRange(NamedTuple):
    position: int
    length: int


class WriteNotes:
    """``path`` is made by the parent of the child."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), ROOM)
        self._lock = Lock()

    @classmethod
    def made(cls, path: Path) -> WriteNotes:
        with path.open("wb") as file:
            file.truncate(ROOM)
        return cls(path)

    def clear(self) -> None:
        """All that is on disk now counts as synced."""
        _COUNT.pack_into(self._memory, 0, 0)

    def add(self, file: int, position: int, length: int) -> None:
        """From any thread."""
        with self._lock:
            count = self._count()
            place = _COUNT.size + count * _NOTE.size
            if place + _NOTE.size <= ROOM:
                _NOTE.pack_into(self._memory, place, file, position, length)
            # Behind the note; more than fit are counted, so that it can be told.
            _COUNT.pack_into(self._memory, 0, count + 1)

    def unsynced(self) -> dict[int, list[WrittenRange]]:
        """By the number of a file; nothing if more was noted than there is room for."""
        found: dict[int, list[WrittenRange]] = defaultdict(list)
        end = _COUNT.size + self._count() * _NOTE.size
        if end > ROOM:
            return {}
        for file, position, length in _NOTE.iter_unpack(
            self._memory[_COUNT.size : end]
        ):
            if length == _ALL_SYNCED:
                found.clear()
            elif length in (_SYNCED, _MADE):
                found.pop(file, None)
            else:
                found[file].append(WrittenRange(position, length))
        return found

    def _count(self) -> int:
        count: int = _COUNT.unpack_from(self._memory, 0)[0]
        return count


def note_files(notes: WriteNotes) -> None:
    """Have the file system of the log noted in this process from now on."""
    open_, write = Files.open, Files.write
    sync, sync_all = Files.sync, Files.sync_all

    def noted_open(
        self: Files, path: str, *, write: bool = False, create: bool = False
    ) -> int:
        handle = open_(self, path, write=write, create=create)
        if create and not (found := os.fstat(handle)).st_size:
            notes.add(found.st_ino, 0, _MADE)  # the number was another file's, perhaps
        return handle

    def noted_write(
        self: Files, handle: int, buffers: Sequence[Buffer], position: int
    ) -> int:
        notes.add(os.fstat(handle).st_ino, position, sum(map(len, buffers)))
        return write(self, handle, buffers, position)

    def noted_sync(self: Files, handle: int) -> None:
        sync(self, handle)
        notes.add(os.fstat(handle).st_ino, 0, _SYNCED)

    def noted_sync_all(self: Files, handle: int) -> None:
        sync_all(self, handle)
        notes.add(0, 0, _ALL_SYNCED)

    for name, noted in (
        ("open", noted_open),
        ("write", noted_write),
        ("sync", noted_sync),
        ("sync_all", noted_sync_all),
    ):
        setattr(Files, name, noted)
