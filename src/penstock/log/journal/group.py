"""The journal group: everything that is promised together, under one checksum.

A group is written by one call and is on disk whole or not at all. Little-endian::

    0   4  magic "PNSJ"
    4   1  version, 1
    5   3  zero
    8   4  length of the group, a multiple of 8
    12  4  CRC32C of all other bytes of the group
    16  8  position of this group in the journal, in bytes since its beginning
    24  8  synced: every byte before this position was on disk when this was written
    32  8  stamp of the journal file it belongs to
    40  8  group number, rising
    48  8  time of writing, ms
    56  4  number of entries
    60  4  zero
    64     entries: bytes u32, kind u16, zero u16, topic id u64, data, zeros to 8

The stamp is random for every file, so what a recycled file held before, or what a
disk block held in another life, is never taken for a group of this file. *synced*
tells damage from a torn tail: bytes that a later group knew to be on disk were
confirmed, whatever they look like now.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from penstock.files import Buffer
from penstock.log.frame import checksum, padding

MAGIC = b"PNSJ"
VERSION = 1
HEADER = struct.Struct("<4sB3xIIQQQQqI4x")
HEADER_BYTES = HEADER.size
ENTRY = struct.Struct("<IHHQ")
# Data of a START entry: the first offset that still counts.
START = struct.Struct("<Q")
# Data of a TRUNCATE entry: frames from the first offset on go, the second is the end.
TRUNCATE = struct.Struct("<QQ")
_CRC = struct.Struct("<I")


class EntryKind(IntEnum):
    """Entry kinds of the log itself; kinds from FIRST_OWNED on belong to owners."""

    EVENTS = 1
    TOPIC = 2
    START = 3
    TRUNCATE = 4
    DELETE = 5
    ROWS = 6


FIRST_OWNED = 256
LAST_OWNED = 0xFFFF


class JournalEntry(NamedTuple):
    kind: int
    topic: int
    data: Buffer
    more: Buffer = b""
    """Data may come in two parts, so that no caller has to join them."""

    @property
    def size(self) -> int:
        return len(self.data) + len(self.more)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHeader:
    length: int
    crc: int
    position: int
    synced: int
    stamp: int
    number: int
    time_ms: int
    entries: int

    @property
    def end(self) -> int:
        return self.position + self.length


def encode(
    entries: Sequence[JournalEntry],
    *,
    position: int,
    synced: int,
    stamp: int,
    number: int,
    time_ms: int,
) -> list[Buffer]:
    """The buffers of one group, ready to be written in one call."""
    parts: list[Buffer] = []
    for entry in entries:
        size = entry.size
        parts.append(ENTRY.pack(size, entry.kind, 0, entry.topic))
        parts.append(entry.data)
        if entry.more:
            parts.append(entry.more)
        if size % 8:
            parts.append(padding(size))
    length = HEADER_BYTES + sum(map(len, parts))
    head = bytearray(
        HEADER.pack(
            MAGIC,
            VERSION,
            length,
            0,
            position,
            synced,
            stamp,
            number,
            time_ms,
            len(entries),
        )
    )
    _CRC.pack_into(head, 12, checksum(head, parts))
    return [head, *parts]


def peek(block: Buffer, at: int) -> GroupHeader | None:
    """The header at ``at`` if one could start there; nothing is verified."""
    if at + HEADER_BYTES > len(block):
        return None
    magic, version, length, crc, position, synced, stamp, number, time_ms, entries = (
        HEADER.unpack_from(block, at)
    )
    if magic != MAGIC or version != VERSION or length < HEADER_BYTES or length % 8:
        return None
    return GroupHeader(
        length=length,
        crc=crc,
        position=position,
        synced=synced,
        stamp=stamp,
        number=number,
        time_ms=time_ms,
        entries=entries,
    )


def intact(block: memoryview, at: int, header: GroupHeader) -> bool:
    group = block[at : at + header.length]
    return len(group) == header.length and checksum(group, ()) == header.crc


def entries_of(
    block: memoryview, at: int, header: GroupHeader
) -> Iterator[tuple[JournalEntry, int]]:
    """The entries of an intact group as views of ``block``, and where data begins.

    The second counts from the beginning of the group.
    """
    cursor = at + HEADER_BYTES
    for _ in range(header.entries):
        size, kind, _zero, topic = ENTRY.unpack_from(block, cursor)
        cursor += ENTRY.size
        yield JournalEntry(kind, topic, block[cursor : cursor + size]), cursor - at
        cursor += size + -size % 8


def start_in(entry: JournalEntry) -> int:
    """The offset that a START entry carries."""
    return int(START.unpack(entry.data)[0])


def cut_in(entry: JournalEntry) -> tuple[int, int]:
    """What a TRUNCATE entry carries: where frames are cut off, and the new end."""
    cut, end = TRUNCATE.unpack(entry.data)
    return int(cut), int(end)
