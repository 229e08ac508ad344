"""The header of a journal file.

Little-endian::

    0   4  magic "PNSF"
    4   1  version, 2
    5   1  flags, bit 0: the file may be longer than its groups; bit 1: by zeros
    6   2  zero
    8   4  length of this header, 64
    12  4  CRC32C of all other bytes of the header
    16  8  position of the first group
    24  8  stamp, random
    32  8  time of creation, ms
    40  8  synced: every byte before this position was on disk when the file began
    48  16 zero

What stands behind the groups of a file that is used again is old content. One that is
new has zeros there, as it has its blocks beforehand.
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
LONGER = 1
ZEROS = 2
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHeader:
    start: int
    stamp: int
    longer: bool
    """Whether the file may be longer than its groups."""
    zeros: bool
    """Whether it is so by zeros, and not by old content."""
    synced: int


def encode_header(
    start: int, stamp: int, time_ms: int, *, synced: int, recycled: bool
) -> bytes:
    flags = LONGER if recycled else LONGER | ZEROS
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
    return FileHeader(
        start=start,
        stamp=stamp,
        longer=bool(flags & LONGER),
        zeros=bool(flags & ZEROS),
        synced=synced,
    )
