"""The file system as the log uses it; the only place that renames and sets modes.

Handles are plain file descriptors. Writes name their position, so a write that
failed half-way is repeated over itself and never leaves a gap. A file exists for
good only after ``sync_directory`` of its folder: creating and renaming do not
imply it.

What is made is for its owner alone, whatever the umask of the process is;
``FileAccess`` lets a group read it.

``Files`` is the real thing; ``penstock.testing.CrashDisk`` is the same interface
in memory, with power failures.
"""

from __future__ import annotations

import ctypes
import errno
import grp
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.direct_write import BLOCK_BYTES, Source, write_blocks
from penstock.errors import DiskFull, InvalidOption, WriteFailed

Buffer = bytes | bytearray | memoryview

FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# The kernel takes at most IOV_MAX (1024) buffers a call.
MAX_BUFFERS = 1000
# For syncfs, which the standard library has no name for.
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """Who may read what is made. ``group``: its number, if not that of the process."""

    file: int
    directory: int
    group: int | None = None


# What tells one state of a file from another: time of change, size, inode.
FileStamp = tuple[int, int, int]

PRIVATE = FileAccess(file=0o600, directory=0o700)
# For programs that we start and that open files by themselves.
PRIVATE_UMASK = 0o077


def access_for(group: str | None) -> FileAccess:
    """Access for the owner, and to read for a group; raises InvalidOption."""
    if group is None:
        return PRIVATE
    try:
        found = grp.getgrnam(group)
    except (KeyError, ValueError):
        raise InvalidOption("group", group, "a group of this machine") from None
    return FileAccess(file=0o640, directory=0o750, group=found.gr_gid)


class FileSystem(Protocol):
    """What the log asks of a file system."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int: ...
    def close(self, handle: int) -> None: ...
    def size(self, handle: int) -> int: ...
    def read(self, handle: int, length: int, position: int) -> bytes: ...
    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int: ...
    def write_direct(
        self, handle: int, buffers: Sequence[Buffer], position: int
    ) -> None: ...
    def sync(self, handle: int) -> None: ...
    def truncate(self, handle: int, length: int) -> None: ...
    def exists(self, path: str) -> bool: ...
    def list(self, path: str) -> list[str]: ...
    def make_directory(self, path: str) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def sync_all(self, handle: int) -> None: ...
    def rename(self, source: str, target: str) -> None: ...
    def remove(self, path: str) -> None: ...
    def remove_tree(self, path: str) -> None: ...


class Files:
    """The operating system's file system; ``access`` None leaves modes to the umask."""

    _access: FileAccess | None = PRIVATE  # for classes that derive from it, too

    def __init__(self, access: FileAccess | None = PRIVATE) -> None:
        self._access = access

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        flags = os.O_RDWR if write else os.O_RDONLY
        if create:
            flags |= os.O_CREAT
        if self._access is None or not (write or create):
            return os.open(path, flags | os.O_CLOEXEC, 0o666)
        handle = os.open(path, flags | os.O_CLOEXEC, self._access.file)
        _settle(handle, self._access)
        return handle

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

    def write_direct(
        self, handle: int, buffers: Sequence[Buffer], position: int
    ) -> None:
        """The same, past the page cache where that is possible: for much at once."""
        length = sum(map(len, buffers))
        begin = position + -position % BLOCK_BYTES
        blocks = position + length - begin
        blocks -= blocks % BLOCK_BYTES
        source = Source(buffers)
        if blocks > 0:
            if begin > position:
                self.write(handle, source.take(begin - position), position)
            if write_blocks(handle, source, begin, blocks):
                if rest := source.take(length):
                    self.write(handle, rest, begin + blocks)
                return
        self.write(handle, buffers, position)

    def sync(self, handle: int) -> None:
        os.fdatasync(handle)

    def truncate(self, handle: int, length: int) -> None:
        os.ftruncate(handle, length)

    def exists(self, path: str) -> bool:
        """Whether it is there; raises PermissionError if that is not ours to know."""
        try:
            os.stat(path)
        except PermissionError:
            raise
        except (OSError, ValueError):
            return False
        return True

    def list(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        access = self._access or FileAccess(file=0o666, directory=0o777)
        try:
            os.mkdir(path, access.directory)
        except FileExistsError:
            return
        except FileNotFoundError:
            self.make_directory(os.path.dirname(path))
            self.make_directory(path)
            return
        if self._access is not None:
            _settle(path, access)

    def secure(self, directory: str, names: Iterable[str]) -> tuple[str, ...]:
        """Give a directory and what it has of these names the modes of what is made.

        A folder that has its mode already is not looked into. Others that share the
        directory, like those of a folder for temporary files, keep their access.

        Returns what belongs to another user and stays open to others.
        """
        access = self._access or PRIVATE
        directory = os.path.realpath(directory)  # the owner may have made it a link
        found = os.stat(directory)
        left = []
        if found.st_mode & stat.S_ISVTX or not _settle(directory, access):
            left = [directory] if found.st_mode & 0o777 & ~access.directory else []
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isdir(path):
                left += _secured_tree(path, access)
            elif os.path.isfile(path) and not _settle(path, access):
                left.append(path)
        return tuple(left)

    def sync_directory(self, path: str) -> None:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sync_all(self, handle: int) -> None:
        """Sync everything of the file system that a folder is of, names and all.

        Told are errors since the handle was opened, or since it was last used for this,
        of whatever file, open or not (Linux 5.8; before, nothing was told).
        """
        if _libc.syncfs(handle):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)


def _settle(file: int | str, access: FileAccess) -> bool:
    """Give a file or folder its mode and group; False if it is another user's."""
    try:
        found = os.stat(file) if isinstance(file, int) else os.lstat(file)
        if stat.S_ISLNK(found.st_mode) or _fits(found, access):
            return True  # what a link leads to may be another user's
        if access.group is not None and found.st_gid != access.group:
            os.chown(file, -1, access.group)
        os.chmod(file, _mode(found, access))
    except FileNotFoundError:
        return True  # removed meanwhile
    except PermissionError:
        return False
    return True


def _fits(found: os.stat_result, access: FileAccess) -> bool:
    mode = stat.S_IMODE(found.st_mode) & 0o777
    return mode == _mode(found, access) and access.group in (None, found.st_gid)


def _mode(found: os.stat_result, access: FileAccess) -> int:
    return access.directory if stat.S_ISDIR(found.st_mode) else access.file


def _secured_tree(top: str, access: FileAccess) -> list[str]:
    """Settle a folder and all below it, itself last: a start that dies begins anew."""
    found = os.lstat(top)
    if stat.S_ISLNK(found.st_mode) or _fits(found, access):
        return []
    left = []
    for root, _, names in os.walk(top, topdown=False):
        paths = [os.path.join(root, name) for name in names]
        mine = [p for p in paths if os.path.isfile(p) and not os.path.islink(p)]
        left += [path for path in (*mine, root) if not _settle(path, access)]
    return left


def make_directories(files: FileSystem, path: str) -> None:
    """Have the folder and all above it, each of them for good."""
    if files.exists(path):
        return
    parent = os.path.dirname(path)
    make_directories(files, parent)
    files.make_directory(path)
    files.sync_directory(parent)


def make_file(files: FileSystem, path: str) -> None:
    """Have the file, with the mode of what is made here, before others open it."""
    files.close(files.open(path, write=True, create=True))


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
