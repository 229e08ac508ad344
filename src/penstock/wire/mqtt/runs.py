"""Runs: neighbours on the wire that look alike, read many at a time.

Packets of equal length stand at equal distances. So a block of PUBLISHes is one
``struct`` of heads, identifiers and payloads, and byte ``i`` of many acknowledgements
one slice with a step: less than a tenth of a microsecond a packet, where reading each
by itself takes half of one. Blocks and steps grow, so that a short run costs little in
front of a long rest.

The plain way: read one, then ``while data.startswith(head, at)`` the next.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

# A PUBLISH has at least a header, and a topic of one byte with its length.
_SHORTEST: Final = 5
# So many more of one length in a row, and blocks are tried, each larger than the last.
_EQUAL: Final = 2
_SMALLEST_BLOCK: Final = 8
_LARGEST_BLOCK: Final = 128
_BLOCK_GROWTH: Final = 4
# The largest have some 16 KiB.
_KEPT_BLOCKS: Final = 128

# From so many on columns are cheaper than looking at each.
_FEW: Final = 8
_GROWTH: Final = 8


def publish_run(
    data: bytes,
    at: int,
    start: int,
    end: int,
    field: bytes,
    max_bytes: int,
    version: int,
) -> tuple[list[bytes], list[int], int]:
    """Payloads and packet identifiers of the PUBLISHes alike from ``at`` on; their end.

    They have the same first byte, and the topic ``field``, its length included. The
    first has its rest from ``start`` to ``end``. The run ends in front of a packet that
    has properties, is not complete, or is wrong in any way; it may be empty. With QoS 0
    there are no identifiers.
    """
    first, size, width = data[at], len(data), len(field)
    qos, new = first & 0x06, version == 5
    extra = width + (2 if qos else 0) + new
    payloads: list[bytes] = []
    ids: list[int] = []
    stride = equal = 0
    while True:
        payload_at = start + extra
        if (
            payload_at > end
            or not data.startswith(field, start)
            or (new and data[payload_at - 1])
        ):
            break
        if qos:
            id = data[start + width] << 8 | data[start + width + 1]
            if not id:
                break
            ids.append(id)
        payloads.append(data[payload_at:end])
        if end - at != stride:
            stride, equal = end - at, 0
        elif equal < _EQUAL:
            equal += 1
        else:
            head = data[at : start + width]
            end = _take_blocks(data, end, stride, head, payloads, ids, bool(qos), new)
            equal = 0
        at = end
        if size - at < _SHORTEST or data[at] != first:
            break
        length = data[at + 1]
        start = at + 2
        if length > 0x7F:
            high = data[start]
            start += 1
            # Longer ones, and what is not minimal, begin a run of their own.
            if not 0 < high < 0x80:
                break
            length += (high << 7) - 0x80
        end = start + length
        if end > size or end - at > max_bytes:
            break
    return payloads, ids, at


def alike(
    data: bytes, at: int, stride: int, head: bytes, zeros: Sequence[int] = ()
) -> int:
    """How many packets of ``stride`` bytes from ``at`` on begin with ``head``.

    Bytes at the offsets ``zeros`` behind their beginning are zero as well. All of them
    are complete.
    """
    left = (len(data) - at) // stride
    count = 0
    step = _FEW
    while left:
        tried = min(left, step)
        good = _alike(data, at, stride, head, zeros, tried)
        count += good
        if good < tried:
            break
        at += good * stride
        left -= good
        step *= _GROWTH
    return count


def two_bytes(data: bytes, at: int, stride: int, count: int) -> list[int]:
    """The numbers of two bytes at ``at`` and ``count - 1`` times ``stride`` on."""
    if count < _FEW:
        return [
            data[place] << 8 | data[place + 1]
            for place in range(at, at + count * stride, stride)
        ]
    last = at + (count - 1) * stride + 2
    both = bytearray(2 * count)
    both[0::2] = data[at : last - 1 : stride]
    both[1::2] = data[at + 1 : last : stride]
    return list(struct.unpack(f">{count}H", both))


def _take_blocks(
    data: bytes,
    at: int,
    stride: int,
    head: bytes,
    payloads: list[bytes],
    ids: list[int],
    has_id: bool,
    new: bool,
) -> int:
    """Append what blocks of packets of ``stride`` bytes hold; where they end.

    A block in which a single packet is not plain is left as it is.
    """
    width = 2 + has_id + new
    length = stride - len(head) - 2 * has_id - new
    count = _SMALLEST_BLOCK
    while True:
        while len(data) - at < count * stride:
            count //= _BLOCK_GROWTH
            if count < _SMALLEST_BLOCK:
                return at
        block = _block(len(head), has_id, new, length, count)
        fields = block.unpack_from(data, at)
        if fields[::width].count(head) < count:
            return at
        if new and any(fields[width - 2 :: width]):
            return at
        if has_id:
            numbers = fields[1::width]
            if 0 in numbers:
                return at
            ids += numbers
        payloads += fields[width - 1 :: width]
        at += count * stride
        count = min(count * _BLOCK_GROWTH, _LARGEST_BLOCK)


@lru_cache(_KEPT_BLOCKS)
def _block(
    head_bytes: int, has_id: bool, new: bool, payload_bytes: int, count: int
) -> struct.Struct:
    """``count`` times head, identifier, length of properties and payload."""
    packet = f"{head_bytes}s{'H' * has_id}{'B' * new}{payload_bytes}s"
    return struct.Struct(">" + packet * count)


def _alike(
    data: bytes, at: int, stride: int, head: bytes, zeros: Sequence[int], count: int
) -> int:
    """As ``alike``, for at most ``count`` packets, all looked at."""
    if count <= _FEW:
        return _one_by_one(data, at, stride, head, zeros, count)
    good = count
    columns = [(i, head[i : i + 1]) for i in range(len(head))]
    columns += [(i, b"\0") for i in zeros]
    stop = at + (count - 1) * stride + 1
    for i, byte in columns:
        behind = data[at + i : stop + i : stride].lstrip(byte)
        good = min(good, count - len(behind))
    return good


def _one_by_one(
    data: bytes, at: int, stride: int, head: bytes, zeros: Sequence[int], count: int
) -> int:
    for index in range(count):
        if not data.startswith(head, at) or any(data[at + i] for i in zeros):
            return index
        at += stride
    return count
