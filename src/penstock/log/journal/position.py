"""The position file: how far the journal is synced, for readers of other processes.

It is written after each sync and never synced itself, so what it says is at most
what is true. Crash promise: rebuilt; without it a reader looks at the journal of a
log that no process writes. Little-endian::

    0   4  magic "PNSP"
    4   1  version, 1
    5   3  zero
    8   8  synced position of the journal
    16  8  the same with all bits inverted, so that a torn read shows
"""

from __future__ import annotations

import logging
import struct

from penstock.files import FileSystem

logger = logging.getLogger(__name__)

MAGIC = b"PNSP"
VERSION = 1
LAYOUT = struct.Struct("<4sB3xQQ")
_ALL_BITS = (1 << 64) - 1
# A reader may look while the writer writes; the next look is fine.
_LOOKS = 100


class PositionFile:
    def __init__(self, files: FileSystem, path: str) -> None:
        self._files = files
        self._handle = files.open(path, write=True, create=True)
        self._failing = False

    def publish(self, position: int) -> None:
        """Let readers know. If it cannot be written, they see less, and no harm."""
        data = LAYOUT.pack(MAGIC, VERSION, position, position ^ _ALL_BITS)
        try:
            self._files.write(self._handle, [data], 0)
        except OSError as error:
            if not self._failing:
                logger.warning(
                    "position file not written, readers fall behind: %s",
                    error,
                    extra={"action": "position_failed"},
                )
            self._failing = True
        else:
            self._failing = False

    def close(self) -> None:
        self._files.close(self._handle)


def read_position(files: FileSystem, path: str) -> int | None:
    """The published position; None if there is none to be had."""
    if not files.exists(path):
        return None
    handle = files.open(path)
    try:
        for _ in range(_LOOKS):
            data = files.read(handle, LAYOUT.size, 0)
            if len(data) < LAYOUT.size:
                return None
            magic, version, position, inverse = LAYOUT.unpack(data)
            if magic != MAGIC or version != VERSION:
                return None
            if position == inverse ^ _ALL_BITS:
                return int(position)
    finally:
        files.close(handle)
    return None
