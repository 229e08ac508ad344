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


class LockHolder(msgspec.Struct, frozen=True, omit_defaults=True):
    pid: int
    role: str = ""
    """What the process is, if it said so."""


class DirectoryLock:
    def __init__(self, path: str, files: Files | None = None, role: str = "") -> None:
        """Take the lock at ``path``; raises DirectoryLocked naming the holder."""
        self._handle = (files or Files()).open(path, write=True, create=True)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._handle)
            raise DirectoryLocked(os.path.dirname(path), holder_pid(path)) from None
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, msgspec.json.encode(LockHolder(os.getpid(), role)), 0)

    def release(self) -> None:
        os.ftruncate(self._handle, 0)
        os.close(self._handle)


def lock_holder(path: str) -> LockHolder | None:
    """The process named in the lock file, alive or not."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=LockHolder)
    except (OSError, msgspec.DecodeError):
        return None


def holder_pid(path: str) -> int | None:
    """The number of that process."""
    holder = lock_holder(path)
    return None if holder is None else holder.pid


def is_locked(path: str) -> bool:
    """Whether the lock is taken, whichever process it names; takes it for a moment."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


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
