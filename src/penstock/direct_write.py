"""Large writes that go past the page cache (O_DIRECT), where the file system can.

A new page of the cache costs several times what the disk's own transfer does, and most
of what a log writes nobody reads from there. What is not at the bounds of blocks, and
everything where a file system knows no such writes, goes the usual way: the caller's.
Nothing is on disk for good before the file is synced, as ever.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections import deque
from collections.abc import Iterable

# What every disk and file system of today takes for a bound.
BLOCK_BYTES = 4096
CHUNK_BYTES = 1 << 20
_CANNOT = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})


class Source:
    """Buffers as one run of bytes that is taken from its front."""

    def __init__(self, buffers: Iterable[bytes | bytearray | memoryview]) -> None:
        self._buffers = deque(memoryview(one) for one in buffers)

    def take(self, length: int) -> list[memoryview]:
        """The next bytes, at most so many."""
        taken = []
        while length and self._buffers:
            one = self._buffers.popleft()
            if len(one) > length:
                self._buffers.appendleft(one[length:])
                one = one[:length]
            taken.append(one)
            length -= len(one)
        return taken


def write_blocks(handle: int, source: Source, position: int, length: int) -> bool:
    """Write whole blocks, if that is possible here; raises OSError.

    When it is not (False), nothing is to be relied on of what was to be written.
    """
    flags = fcntl.fcntl(handle, fcntl.F_GETFL)
    try:
        fcntl.fcntl(handle, fcntl.F_SETFL, flags | os.O_DIRECT)
        try:
            _write_chunks(handle, source, position, length)
        finally:
            fcntl.fcntl(handle, fcntl.F_SETFL, flags)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    return True


def _write_chunks(handle: int, source: Source, position: int, length: int) -> None:
    # Memory of our own, because it has to begin at the bound of a block as well.
    room = memoryview(mmap.mmap(-1, min(CHUNK_BYTES, length)))
    while length:
        size = min(len(room), length)
        at = 0
        for piece in source.take(size):
            room[at : at + len(piece)] = piece
            at += len(piece)
        done = 0
        while done < size:
            done += os.pwrite(handle, room[done:size], position + done)
        position += size
        length -= size
