"""The header of a journal file.

Little-endian::

    0   4  magic "PNSF"
    4   1  version, 2
    5   1  flags, bit 0: recycled, the rest of the file is old content
    6   2  zero
    8   4  length of this header, 64
    12  4  CRC32C of all other bytes of the header
    16  8  position of the first group
    24  8  stamp, random
    32  8  time of creation, ms
    40  8  synced: every byte before this position was on disk when the file began
    48  16 zero
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from penstock.errors import UnsupportedVersion
from penstock.log.frame import checksum

MAGIC = b"PNSF"
VERSION = 2
_READABLE = range(1, VERSION + 1)
HEADER = struct.Struct("<4sBBHIIQQqQ16x")
HEADER_BYTES = HEADER.size
RECYCLED = 1
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    start: int
    stamp: int
    recycled: bool
    synced: int


def encode_header(
    start: int, stamp: int, time_ms: int, *, synced: int, recycled: bool
) -> bytes:
    flags = RECYCLED if recycled else 0
    fields = (HEADER_BYTES, 0, start, stamp, time_ms, synced)
    head = bytearray(HEADER.pack(MAGIC, VERSION, flags, 0, *fields))
    _CRC.pack_into(head, 12, checksum(head, ()))
    return bytes(head)


def decode_header(data: bytes, file: str) -> FileHeader | None:
    """The header of a journal file, None if there is none or it is damaged."""
    if len(data) < HEADER_BYTES:
        return None
    magic, version, flags, _, _, crc, start, stamp, _, synced = HEADER.unpack_from(data)
    if magic != MAGIC or crc != checksum(data[:HEADER_BYTES], ()):
        return None
    if version not in _READABLE:
        raise UnsupportedVersion(file, version, VERSION)
    recycled = bool(flags & RECYCLED)
    return FileHeader(start=start, stamp=stamp, recycled=recycled, synced=synced)
