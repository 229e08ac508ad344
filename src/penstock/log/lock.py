"""One writer per data directory: an advisory lock that dies with its process.

The lock is ``flock`` on the file ``lock``; its content names the holder. A process
that was killed leaves the file but not the lock, so the next one takes it over.
"""

from __future__ import annotations

import fcntl
import os

import msgspec

from penstock.errors import DirectoryLocked
from penstock.files import Files


class Holder(msgspec.Struct, frozen=True):
    pid: int


class DirectoryLock:
    def __init__(self, path: str, files: Files | None = None) -> None:
        """Take the lock at ``path``; raises DirectoryLocked naming the holder."""
        self._handle = (files or Files()).open(path, write=True, create=True)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise DirectoryLocked(os.path.dirname(path), holder_pid(path)) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, msgspec.json.encode(Holder(os.getpid())), 0)

    def release(self) -> None:
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def holder_pid(path: str) -> int | None:
    """The process named in the lock file, alive or not."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Holder).pid
    except (OSError, msgspec.DecodeError):
        return None


def is_held(path: str) -> bool:
    """Whether a living process writes here; in doubt, yes."""
    pid = holder_pid(path)
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
