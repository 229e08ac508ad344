"""A disk that is full, or whose syncs fail, when a test wants it to.

It stands in front of another file system: a CrashDisk, or the real one. A write that
fails leaves half of its bytes, as a full disk does.
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.files import Buffer, Files, FileSystem

# What needs room, and what makes sure.
_WRITES = ("create", "write", "make_directory")
_SYNCS = ("sync", "sync_directory")


@dataclass(slots=True)
class _DiskFault:
    left: int | None
    """How many calls are to fail; None: all of them."""
    code: int


class UnsyncedFiles(Files):
    """The real file system, which is never told to hurry.

    A test that is killed loses nothing by it: only a machine that loses power does.
    """

    def sync(self, handle: int) -> None:
        """Leave it to the operating system."""

    def sync_directory(self, path: str) -> None:
        """Leave it to the operating system."""

    def sync_all(self, handle: int) -> None:
        """Leave it to the operating system."""


class FaultyDisk:
    """The file system of a harness; see penstock.files.FileSystem."""

    def __init__(self, disk: FileSystem) -> None:
        self.under = disk
        """The file system behind it."""
        self.calls: Counter[str] = Counter()
        """How often each action was asked for that changes something."""
        self._faults: dict[str, _DiskFault] = {}

    # Accidents

    def fill(self, times: int | None = None) -> None:
        """The next writes find the disk full; all of them, until it is healed."""
        self._break(_WRITES, times, errno.ENOSPC)

    def fail_syncs(self, times: int | None = None) -> None:
        """The next syncs fail; all of them, until it is healed."""
        self._break(_SYNCS, times, errno.EIO)

    def heal(self) -> None:
        """Everything works again."""
        self._faults.clear()

    def _break(self, actions: tuple[str, ...], times: int | None, code: int) -> None:
        self._faults.update(dict.fromkeys(actions, _DiskFault(times, code)))

    # The file system

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        if create and not self.under.exists(path):
            self._changing("create", path)
        return self.under.open(path, write=write, create=create)

    def close(self, handle: int) -> None:
        self.under.close(handle)

    def size(self, handle: int) -> int:
        return self.under.size(handle)

    def read(self, handle: int, length: int, position: int) -> bytes:
        return self.under.read(handle, length, position)

    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        try:
            self._changing("write", "")
        except OSError:
            data = b"".join(buffers)
            self.under.write(handle, [data[: len(data) // 2]], position)
            raise
        return self.under.write(handle, buffers, position)

    def write_direct(
        self, handle: int, buffers: Sequence[Buffer], position: int
    ) -> None:
        self.write(handle, buffers, position)

    def sync(self, handle: int) -> None:
        self._changing("sync", "")
        self.under.sync(handle)

    def truncate(self, handle: int, length: int) -> None:
        self._changing("truncate", "")
        self.under.truncate(handle, length)

    def exists(self, path: str) -> bool:
        return self.under.exists(path)

    def list(self, path: str) -> list[str]:
        return self.under.list(path)

    def make_directory(self, path: str) -> None:
        self._changing("make_directory", path)
        self.under.make_directory(path)

    def sync_directory(self, path: str) -> None:
        self._changing("sync_directory", path)
        self.under.sync_directory(path)

    def sync_all(self, handle: int) -> None:
        self._changing("sync_all", "")
        self.under.sync_all(handle)

    def rename(self, source: str, target: str) -> None:
        self._changing("rename", source)
        self.under.rename(source, target)

    def remove(self, path: str) -> None:
        self._changing("remove", path)
        self.under.remove(path)

    def remove_tree(self, path: str) -> None:
        self._changing("remove_tree", path)
        self.under.remove_tree(path)

    def _changing(self, action: str, path: str) -> None:
        self.calls[action] += 1
        fault = self._faults.get(action)
        if fault is None or fault.left == 0:
            return
        if fault.left is not None:
            fault.left -= 1
        raise OSError(fault.code, os.strerror(fault.code), path)
