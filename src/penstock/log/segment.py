"""A topic segment: batch frames one behind the other, from a base offset on.

Only the last segment of a topic, the *active* one, grows; the others are *sealed*
and change no more, except that compaction or gathering may replace one by a shorter
one.

Crash promise: replayed. Up to the length in the last checkpoint a segment is synced
and precious; whatever is behind that is cut on start and written again from the
journal. Header, little-endian::

    0   4  magic "PNSS"
    4   1  version, 1
    5   3  zero
    8   4  length of this header, a multiple of 8
    12  4  CRC32C of all other bytes of the header
    16  8  base offset
    24  8  topic id
    32  8  time of creation, ms
    40  4  length of the topic's name
    44  4  zero
    48     topic's name in UTF-8, zeros to a multiple of 8
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from penstock.errors import CorruptRecord, UnsupportedVersion
from penstock.files import FileSystem
from penstock.log import frame
from penstock.log.frame import FrameHeader, checksum, padding
from penstock.log.index import Index
from penstock.model.topic import MAX_TOPIC_NAME_BYTES

MAGIC = b"PNSS"
VERSION = 1
HEADER = struct.Struct("<4sB3xIIQQqI4x")
MAX_HEADER_BYTES = HEADER.size + MAX_TOPIC_NAME_BYTES
READ_BYTES = 1 << 20
MAX_OFFSET = 1 << 63
# How the reason of damage begins that may pass: the device would not read.
UNREADABLE = "cannot be read"
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHeader:
    length: int
    base_offset: int
    topic_id: int
    created_ms: int
    topic: str


def encode_header(base_offset: int, topic_id: int, created_ms: int, name: str) -> bytes:
    text = name.encode()
    text += padding(len(text))
    length = HEADER.size + len(text)
    size = len(name.encode())
    head = bytearray(
        HEADER.pack(MAGIC, VERSION, length, 0, base_offset, topic_id, created_ms, size)
    )
    _CRC.pack_into(head, 12, checksum(head, [text]))
    return bytes(head) + text


def decode_header(data: bytes, file: str) -> SegmentHeader:
    """The header of a segment file; raises CorruptRecord."""
    if len(data) < HEADER.size:
        raise CorruptRecord(file, 0, len(data), "segment header is cut short")
    magic, version, length, crc, base, topic_id, created, size = HEADER.unpack_from(
        data
    )
    fits = HEADER.size <= length <= len(data)
    if magic != MAGIC or not fits or checksum(data[:length], ()) != crc:
        raise CorruptRecord(file, 0, HEADER.size, "segment header fails its checksum")
    if version != VERSION:
        raise UnsupportedVersion(file, version, VERSION)
    return SegmentHeader(
        length=length,
        base_offset=base,
        topic_id=topic_id,
        created_ms=created,
        topic=data[HEADER.size : HEADER.size + size].decode(),
    )


def read_header(files: FileSystem, path: str, file: str) -> SegmentHeader:
    handle = files.open(path)
    try:
        return decode_header(files.read(handle, MAX_HEADER_BYTES, 0), file)
    finally:
        files.close(handle)


class FoundFrame(NamedTuple):
    """One verified frame of a segment."""

    position: int
    header: FrameHeader
    body: memoryview


GoOn = Callable[[FrameHeader], bool]
OnDamage = Callable[[int, int, str, int], None]
"""Called with position, length, reason, and the offset behind the damage (or -1)."""


def ignore_damage(position: int, length: int, reason: str, behind: int) -> None:
    """For those whose damage is reported by the reader of the frames themselves."""


def frames(
    files: FileSystem,
    handle: int,
    *,
    position: int,
    end: int,
    on_damage: OnDamage,
    read_bytes: int = READ_BYTES,
    go_on: GoOn | None = None,
    end_offset: int = MAX_OFFSET,
) -> Iterator[FoundFrame]:
    """Verified frames from ``position`` to ``end``, damaged ranges left out.

    Blocks are read as they are needed, so memory is bounded by the largest frame.
    ``go_on`` is asked before a frame is looked into and may end it there. Behind
    damage only a frame counts whose offsets follow and lie before ``end_offset``: a
    payload may hold anything, a frame too.
    """
    block, base = memoryview(b""), position
    expected = 0
    while position < end:
        at = position - base
        header = frame.peek(block, at) if at < len(block) else None
        # One that says it is of another segment is damaged: no reader ends there.
        if (
            header is not None
            and go_on is not None
            and header.end_offset <= end_offset
            and not go_on(header)
        ):
            return
        wanted = header.length if header else frame.HEADER_BYTES
        if at + wanted > len(block) and base + len(block) < end:
            length = min(max(read_bytes, wanted), end - position)
            try:
                data = files.read(handle, length, position)
            except OSError as error:
                on_damage(position, end - position, f"{UNREADABLE}: {error}", -1)
                return
            if at == 0 and len(data) <= len(block):
                on_damage(position, end - position, "the file ends too early", -1)
                return
            block, base = memoryview(data), position
            continue
        if header is None or not frame.intact(block, at, header):
            offsets = range(expected, end_offset)
            following = _next_frame(files, handle, position + 8, end, offsets)
            stop = end if following is None else following[0]
            offset = -1 if following is None else following[1].base_offset
            on_damage(position, stop - position, "frame fails its checksum", offset)
            position = stop
            continue
        body = block[at + frame.HEADER_BYTES : at + header.length]
        yield FoundFrame(position=position, header=header, body=body)
        expected = header.end_offset
        position += header.length


def _next_frame(
    files: FileSystem, handle: int, position: int, end: int, offsets: range
) -> tuple[int, FrameHeader] | None:
    """The first intact frame at or behind ``position`` that holds such offsets."""
    rest = memoryview(files.read(handle, max(end - position, 0), position))
    raw = rest.obj
    assert isinstance(raw, bytes)
    at = raw.find(frame.MAGIC)
    while at >= 0:
        header = frame.peek(rest, at) if at % 8 == 0 else None
        if (
            header is not None
            and header.base_offset in offsets
            and header.end_offset <= offsets.stop
            and frame.intact(rest, at, header)
        ):
            return position + at, header
        at = raw.find(frame.MAGIC, at + 1)
    return None


def build_index(
    files: FileSystem,
    handle: int,
    *,
    start: int,
    base_offset: int,
    end: int,
    on_damage: OnDamage,
) -> Index:
    """The index of a segment, made from its frames."""
    index = Index(length=start, end_offset=base_offset)
    for found in frames(files, handle, position=start, end=end, on_damage=on_damage):
        index.add(found.position, found.header)
    index.length = end
    return index
