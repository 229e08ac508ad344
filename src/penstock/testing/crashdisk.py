"""A file system in memory that loses power, the way POSIX allows it to.

What a sync covered stays. Of everything else any part may be lost, in any
combination: a write may be there, missing, or torn, and where it is missing the file
may hold zeros, junk or its old content, and may have grown or not; a name may have
been created, renamed or removed, or not yet. ``PowerCut`` can be raised in the middle
of an operation, ``fail`` makes calls fail as a full or broken disk does.

Switch off ``honours_sync`` or ``honours_directory_sync`` to see whether a test would
notice a log that does not sync.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from penstock.files import Buffer

_JUNK_LIMIT = 4096


class PowerCut(BaseException):
    """The power went; the log in hand is gone, the disk has what it has."""


@dataclass(slots=True)
class _PendingWrite:
    position: int
    data: bytes


@dataclass(slots=True)
class _Resize:
    length: int


@dataclass(slots=True, eq=False)
class _Inode:
    content: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    unsynced: list[_PendingWrite | _Resize] = field(default_factory=list)
    directory: bool = False


@dataclass(slots=True)
class _Name:
    """A change of one name in one directory; a rename is two of them at once."""

    changes: dict[str, _Inode | None]


class CrashDisk:
    def __init__(
        self, *, honours_sync: bool = True, honours_directory_sync: bool = True
    ) -> None:
        self._honours_sync = honours_sync
        self._honours_directory_sync = honours_directory_sync
        self._names: dict[str, _Inode] = {}
        self._durable_names: dict[str, _Inode] = {}
        self._pending: list[_Name] = []
        self._handles: dict[int, _Inode] = {}
        self._next_handle = 3
        self._cut_in: int | None = None
        self._fault: Callable[[str, str], OSError | None] | None = None
        self.calls = 0

    # Accidents

    def cut_power_in(self, calls: int | None) -> None:
        """Raise PowerCut at the n-th changing call from now on; None: never."""
        self._cut_in = calls

    def fail(self, fault: Callable[[str, str], OSError | None] | None) -> None:
        """Let ``fault(action, path)`` decide which calls fail, and how."""
        self._fault = fault

    def crashed(self, random: Random) -> CrashDisk:
        """The disk as it may be found when the power is back."""
        disk = CrashDisk(
            honours_sync=self._honours_sync,
            honours_directory_sync=self._honours_directory_sync,
        )
        names = dict(self._durable_names)
        mode = random.choice(["none", "all", "prefix", "any"])
        kept = random.randint(0, len(self._pending))
        for number, name in enumerate(self._pending):
            if (
                mode == "all"
                or (mode == "prefix" and number < kept)
                or mode == "any"
                and random.random() < 0.5
            ):
                _rename(names, name)
        for path in sorted(names):
            if os.path.dirname(path) in disk._names or path.count(os.sep) == 1:
                disk._names[path] = _survivor(names[path], random)
        disk._durable_names = dict(disk._names)
        return disk

    def flip_bit(self, path: str, position: int, bit: int = 0) -> None:
        """Damage what is on disk, as a failing medium does."""
        inode = self._names[path]
        inode.content[position] ^= 1 << bit
        inode.durable = bytes(inode.content)

    def paths(self) -> list[str]:
        """Every file there is now."""
        return sorted(path for path, one in self._names.items() if not one.directory)

    # The file system

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        inode = self._names.get(path)
        if inode is None:
            if not create:
                raise FileNotFoundError(path)
            self._changing("create", path)
            inode = _Inode()
            self._name({path: inode})
        self._next_handle += 1
        self._handles[self._next_handle] = inode
        return self._next_handle

    def close(self, handle: int) -> None:
        del self._handles[handle]

    def size(self, handle: int) -> int:
        return len(self._handles[handle].content)

    def read(self, handle: int, length: int, position: int) -> bytes:
        return bytes(self._handles[handle].content[position : position + length])

    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        inode = self._handles[handle]
        data = b"".join(buffers)
        try:
            self._changing("write", self._path_of(inode))
        except (OSError, PowerCut):
            self._apply(inode, _PendingWrite(position, data[: len(data) // 2]))
            raise
        self._apply(inode, _PendingWrite(position, data))
        return len(data)

    def write_direct(
        self, handle: int, buffers: Sequence[Buffer], position: int
    ) -> None:
        self.write(handle, buffers, position)

    def sync(self, handle: int) -> None:
        inode = self._handles[handle]
        self._changing("sync", self._path_of(inode))
        if self._honours_sync:
            inode.durable = bytes(inode.content)
            inode.unsynced.clear()

    def truncate(self, handle: int, length: int) -> None:
        inode = self._handles[handle]
        self._changing("truncate", self._path_of(inode))
        self._apply(inode, _Resize(length))

    def exists(self, path: str) -> bool:
        return path in self._names or path == os.sep

    def list(self, path: str) -> list[str]:
        if not self.exists(path):
            raise FileNotFoundError(path)
        return sorted(
            os.path.basename(one) for one in self._names if os.path.dirname(one) == path
        )

    def make_directory(self, path: str) -> None:
        parent = os.path.dirname(path)
        if path in self._names or path == parent:
            return
        self.make_directory(parent)
        self._changing("make_directory", path)
        self._name({path: _Inode(directory=True)})

    def sync_directory(self, path: str) -> None:
        self._changing("sync_directory", path)
        if not self._honours_directory_sync:
            return
        later = []
        for name in self._pending:
            if any(os.path.dirname(one) == path for one in name.changes):
                _rename(self._durable_names, name)
            else:
                later.append(name)
        self._pending = later

    def sync_all(self, handle: int) -> None:
        self._changing("sync_all", self._path_of(self._handles[handle]))
        if self._honours_directory_sync:
            for name in self._pending:
                _rename(self._durable_names, name)
            self._pending = []
        if self._honours_sync:
            for inode in self._names.values():
                inode.durable = bytes(inode.content)
                inode.unsynced.clear()

    def rename(self, source: str, target: str) -> None:
        if source not in self._names:
            raise FileNotFoundError(source)
        self._changing("rename", source)
        self._name({source: None, target: self._names[source]})

    def remove(self, path: str) -> None:
        if path not in self._names:
            raise FileNotFoundError(path)
        self._changing("remove", path)
        self._name({path: None})

    def remove_tree(self, path: str) -> None:
        for name in [one for one in self._names if one.startswith(path + os.sep)]:
            self.remove(name)
        self.remove(path)

    # Within

    def _changing(self, action: str, path: str) -> None:
        self.calls += 1
        if self._cut_in is not None:
            self._cut_in -= 1
            if self._cut_in <= 0:
                raise PowerCut
        error = None if self._fault is None else self._fault(action, path)
        if error is not None:
            raise error

    def _path_of(self, inode: _Inode) -> str:
        return next((p for p, one in self._names.items() if one is inode), "")

    def _name(self, changes: dict[str, _Inode | None]) -> None:
        name = _Name(changes)
        _rename(self._names, name)
        self._pending.append(name)

    def _apply(self, inode: _Inode, change: _PendingWrite | _Resize) -> None:
        _change(inode.content, change)
        inode.unsynced.append(change)


def _rename(names: dict[str, _Inode], name: _Name) -> None:
    for path, inode in name.changes.items():
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _change(content: bytearray, change: _PendingWrite | _Resize) -> None:
    match change:
        case _PendingWrite(position, data):
            if len(content) < position:
                content.extend(bytes(position - len(content)))
            content[position : position + len(data)] = data
        case _Resize(length):
            del content[length:]
            content.extend(bytes(length - len(content)))


def _survivor(inode: _Inode, random: Random) -> _Inode:
    """What is left of a file: all that was synced, and some of the rest."""
    if inode.directory:
        return inode
    content = bytearray(inode.durable)
    mode = random.choice(["none", "all", "prefix", "any"])
    kept = random.randint(0, len(inode.unsynced))
    for number, change in enumerate(inode.unsynced):
        if mode == "all" or (mode == "prefix" and number < kept):
            _change(content, change)
        elif mode == "any" or (mode == "prefix" and number == kept):
            _tear(content, change, random)
    return _Inode(content, bytes(content))


def _tear(content: bytearray, change: _PendingWrite | _Resize, random: Random) -> None:
    """Apply a change in part: a piece of it, and something else for the rest."""
    if isinstance(change, _Resize):
        if random.random() < 0.5:
            _change(content, change)
        return
    position, data = change.position, change.data
    start = random.randint(0, len(data))
    stop = random.choice([start, len(data), random.randint(start, len(data))])
    if random.random() < 0.5:
        start = 0
    grown = random.choice(["not", "zeros", "junk"])
    if grown != "not" and len(content) < position + len(data):
        missing = position + len(data) - len(content)
        junk = random.randbytes(min(missing, _JUNK_LIMIT))
        content.extend(bytes(missing) if grown == "zeros" else junk)
    _change(content, _PendingWrite(position + start, data[start:stop]))
