"""The file system as the log uses it; the only place that renames files.

Handles are plain file descriptors. Writes name their position, so a write that
failed half-way is repeated over itself and never leaves a gap. A file exists for
good only after ``sync_directory`` of its folder: creating and renaming do not
imply it.

``Files`` is the real thing; ``penstock.testing.CrashDisk`` is the same interface
in memory, with power failures.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from collections.abc import Sequence
from typing import Protocol

from penstock.errors import DiskFull, WriteFailed

Buffer = bytes | bytearray | memoryview

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# The kernel takes at most IOV_MAX (1024) buffers a call.
MAX_BUFFERS = 1000
# For syncfs, which the standard library has no name for.
_libc = ctypes.CDLL(None, use_errno=True)


class FileSystem(Protocol):
    """What the log asks of a file system."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int: ...
    def close(self, handle: int) -> None: ...
    def size(self, handle: int) -> int: ...
    def read(self, handle: int, length: int, position: int) -> bytes: ...
    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int: ...
    def sync(self, handle: int) -> None: ...
    def truncate(self, handle: int, length: int) -> None: ...
    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> list[str]: ...
    def make_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def sync_all(self, path: str) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...


class Files:
    """The operating system's file system."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR if write else os.O_RDONLY
        if create:
            flags |= os.O_CREAT
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def close(self, handle: int) -> None:
        os.close(handle)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def read(self, handle: int, length: int, position: int) -> bytes:
        """Up to ``length`` bytes; fewer only at the end of the file."""
        data = os.pread(handle, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length and (data := os.pread(handle, length - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        """Write all of the buffers at ``position``; return how many bytes."""
        if len(buffers) > MAX_BUFFERS:
            buffers = [b"".join(buffers)]
        total = sum(map(len, buffers))
        written = os.pwritev(handle, buffers, position)
        if written < total:
            rest = memoryview(b"".join(buffers))
            while written < total:
                written += os.pwrite(handle, rest[written:], position + written)
        return total

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)

    def truncate(self, handle: int, length: int) -> None:
        os.ftruncate(handle, length)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileExistsError:
            return
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sync_all(self, path: str) -> None:
        """Sync everything of the file system that holds ``path``, names and all."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if _libc.syncfs(handle):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code), path)
        finally:
            os.close(handle)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)


def make_directories(files: FileSystem, path: str) -> None:
    """Have the folder and all above it, each of them for good."""
    if files.exists(path):
        return
    parent = os.path.dirname(path)
    make_directories(files, parent)
    files.make_directory(path)
    files.sync_directory(parent)


def read_file(files: FileSystem, path: str) -> bytes:
    """The whole content of a small file."""
    handle = files.open(path)
    try:
        return files.read(handle, files.size(handle), 0)
    finally:
        files.close(handle)


def replace_file(
    files: FileSystem, path: str, data: Buffer, *, sync: bool = True
) -> None:
    """Put ``data`` at ``path`` whole or not at all, and for good on return.

    Without ``sync`` a power failure may take it: for what is soon written again.
    """
    temporary = path + ".tmp"
    handle = files.open(temporary, write=True, create=True)
    try:
        files.truncate(handle, 0)
        files.write(handle, [data], 0)
        if sync:
            files.sync(handle)
    finally:
        files.close(handle)
    files.rename(temporary, path)
    if sync:
        files.sync_directory(os.path.dirname(path))


def remove_if_there(files: FileSystem, path: str) -> None:
    if files.exists(path):
        files.remove(path)


def write_error(file: str, action: str, error: OSError) -> WriteFailed:
    """The error of ours for an operating system's: full disk apart from the rest."""
    reason = error.strerror or str(error)
    if error.errno in FULL_ERRNOS:
        return DiskFull(file, action, reason)
    return WriteFailed(file, action, reason)
