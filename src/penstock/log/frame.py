"""The batch frame: some events of one topic, in columns, under one checksum.

All numbers are little-endian, every part starts at a multiple of 8::

    0   4  magic "PNSB"
    4   1  version, 1
    5   1  flags, bit 0: the offsets have gaps (column OFFSET is there);
           bit 1: a generated id says the time of its own event
    6   2  number of columns
    8   4  length of the frame, a multiple of 8
    12  4  CRC32C of all other bytes of the frame
    16  8  base offset
    24  4  number of events, at least 1
    28  4  span: offsets this frame covers, gaps and all
    32  8  smallest timestamp, ms
    40  8  largest timestamp, ms
    48  16 id base: the generated id of the event at the base offset (model/ids.py)
    64     column table, 8 bytes a column: id u8, encoding u8, zero u16, bytes u32
    …      the columns' bytes in table order, each padded with zeros to 8

Magic and length are under the checksum and a frame has at least one event, so no
run of zeros and no header completed by zeros is ever a frame. A frame without its
column reads as that column's default; columns.py writes and batch.py reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import NamedTuple

from crc32c import crc32c

from penstock.files import Buffer
from penstock.model.columns import MAX_FRAME_BYTES

MAGIC = b"PNSB"
VERSION = 1
HEADER = struct.Struct("<4sBBHIIQIIqq16s")
HEADER_BYTES = HEADER.size
TABLE_ENTRY = struct.Struct("<BBHI")
_CRC = struct.Struct("<I")
_CRC_AT = 12


class FrameFlag(IntFlag):
    GAPS = 1
    IDS_BY_TIME = 2


class Column(IntEnum):
    """Column ids. Absent: TIMESTAMP = the smallest, PRIORITY 0, ID generated,
    OFFSET dense, PAYLOAD empty, times 0 for none, others null or empty."""

    TIMESTAMP = 1
    PRIORITY = 2
    ID = 3
    KEY = 4
    HEADERS = 5
    PAYLOAD = 6
    PARENT = 7
    PRODUCER = 8
    OFFSET = 9
    EXPIRES = 10
    NOT_BEFORE = 11


class Encoding(IntFlag):
    """How a column's bytes are laid out, each part padded to 8.

    CONSTANT: the value once. PLAIN: fixed-width values, or int32 offsets
    (count + 1) followed by the bytes. VALIDITY: an Arrow validity bitmap comes first.
    """

    CONSTANT = 1
    PLAIN = 2
    VALIDITY = 4


class FrameHeader(NamedTuple):
    flags: int
    columns: int
    length: int
    crc: int
    base_offset: int
    events: int
    span: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    id_base: bytes

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.span


def padding(length: int) -> bytes:
    """The zeros that bring ``length`` to a multiple of 8."""
    return bytes(-length % 8)


def pack(header: FrameHeader) -> bytes:
    """The 64 bytes of a header as it is, checksum and all."""
    return HEADER.pack(MAGIC, VERSION, *header)


def seal(header: FrameHeader, body: Buffer) -> FrameHeader:
    """The header with the checksum of the frame it makes with ``body``."""
    return header._replace(crc=checksum(pack(header), (body,)))


def build(parts: Sequence[Buffer], header: FrameHeader) -> bytearray:
    """A whole frame: ``parts`` (table and columns) behind a sealed header."""
    # Joined first, so that there is one copy and one checksum, not one a payload.
    whole = bytearray().join([pack(header), *parts])
    _CRC.pack_into(whole, _CRC_AT, checksum(whole, ()))
    return whole


def checksum(head: Buffer, parts: Sequence[Buffer]) -> int:
    """CRC32C of a header, its own four checksum bytes left out, and what follows."""
    view = memoryview(head)
    crc = crc32c(view[_CRC_AT + 4 :], crc32c(view[:_CRC_AT]))
    for part in parts:
        crc = crc32c(part, crc)
    return crc


def peek(block: Buffer, position: int) -> FrameHeader | None:
    """The header at ``position`` if one could start there; nothing is verified."""
    if position + HEADER_BYTES > len(block):
        return None
    magic, version, *fields = HEADER.unpack_from(block, position)
    header = FrameHeader(*fields)
    if magic != MAGIC or version != VERSION or header.events == 0:
        return None
    if not HEADER_BYTES < header.length <= MAX_FRAME_BYTES or header.length % 8:
        return None
    return header


def intact(block: memoryview, position: int, header: FrameHeader) -> bool:
    """Whether the whole frame is in ``block`` and its checksum is right."""
    frame = block[position : position + header.length]
    if len(frame) < header.length:
        return False
    return checksum(frame, ()) == header.crc
