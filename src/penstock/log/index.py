"""The index of a segment: where to start looking for an offset or a time.

An entry stands for a stretch of the segment of about ``interval_bytes``: the offset
and the position at which it begins, and the largest timestamp of the segment up to
its end. The largest so far never falls, so the first entry that reaches a time holds
the first event of that time or later, in whatever order timestamps came.

Crash promise: rebuilt. The file is written when a segment is sealed; lost, torn or
damaged, it is made again from the segment. Little-endian::

    0   4  magic "PNSI"
    4   1  version, 1
    5   3  zero
    8   4  length of the file
    12  4  CRC32C of all other bytes
    16  8  end offset: behind the last event of the segment
    24  8  length of the segment
    32  8  number of events
    40     entries: offset u64, position u64, largest timestamp so far i64
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right

from penstock.log.frame import FrameHeader, checksum

MAGIC = b"PNSI"
VERSION = 1
HEADER = struct.Struct("<4sB3xIIQQQ")
ENTRY = struct.Struct("<QQq")
INTERVAL_BYTES = 1 << 16
_CRC = struct.Struct("<I")
_EARLIEST = -(1 << 63)


class Index:
    __slots__ = ("_offsets", "_positions", "_times", "end_offset", "events", "length")

    def __init__(self, *, length: int, end_offset: int) -> None:
        self._offsets = array("Q")
        self._positions = array("Q")
        self._times = array("q")
        self.length = length
        self.end_offset = end_offset
        self.events = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Index):
            return NotImplemented
        return self.encode() == other.encode()

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp in the segment."""
        return self._times[-1] if self._times else _EARLIEST

    def add(self, position: int, header: FrameHeader) -> None:
        """Note the frame at ``position``, which ends the segment for now."""
        latest = max(self.max_timestamp_ms, header.max_timestamp_ms)
        if not self._positions or position - self._positions[-1] >= INTERVAL_BYTES:
            self._offsets.append(header.base_offset)
            self._positions.append(position)
            self._times.append(latest)
        else:
            self._times[-1] = latest
        self.length = position + header.length
        self.end_offset = header.end_offset
        self.events += header.events

    def position_of(self, offset: int) -> int | None:
        """Where to start reading for ``offset``; None: at the beginning.

        The first entry may stand behind a damaged frame, which has to be met.
        """
        at = bisect_right(self._offsets, offset) - 1
        return None if at < 0 else self._positions[at]

    def position_at(self, timestamp_ms: int) -> int | None:
        """Where to start reading for the first event at a time or later."""
        at = bisect_left(self._times, timestamp_ms)
        return self._positions[at] if at < len(self._positions) else None

    def encode(self) -> bytes:
        rows = zip(self._offsets, self._positions, self._times, strict=True)
        body = b"".join(ENTRY.pack(*row) for row in rows)
        length = HEADER.size + len(body)
        head = bytearray(
            HEADER.pack(
                MAGIC, VERSION, length, 0, self.end_offset, self.length, self.events
            )
        )
        _CRC.pack_into(head, 12, checksum(head, [body]))
        return bytes(head) + body

    @classmethod
    def decode(cls, data: bytes) -> Index | None:
        """The index in ``data``; None if it is torn, damaged or of another version."""
        if len(data) < HEADER.size:
            return None
        magic, version, length, crc, end, segment, events = HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or length != len(data):
            return None
        if checksum(data, ()) != crc:
            return None
        index = cls(length=segment, end_offset=end)
        index.events = events
        for offset, position, latest in ENTRY.iter_unpack(data[HEADER.size :]):
            index._offsets.append(offset)
            index._positions.append(position)
            index._times.append(latest)
        return index
