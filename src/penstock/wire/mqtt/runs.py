"""Runs: how many neighbours on the wire look alike, found by columns.

Packets of equal length stand at equal distances, so byte ``i`` of all of them is one
slice with a step. Comparing those costs some nanoseconds a packet, where looking at
each takes a tenth of a microsecond. Steps grow, so that a short run costs little even
in front of a long rest.

The plain way: ``while data.startswith(head, at): at += stride``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

# A PUBLISH: header, an empty topic of two bytes of length and no payload, rounded up.
_SHORTEST: Final = 5
# So many of one length in a row, and columns are tried.
_EQUAL: Final = 2
# From so many on columns are cheaper than looking at each.
_FEW: Final = 8
_FIRST_STEP: Final = 32
_GROWTH: Final = 8
# Longer heads are cut out and counted: a column for each byte would cost more.
_MANY_COLUMNS: Final = 40


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
            count = alike(data, end, stride, head, (payload_at - 1 - at,) * new)
            if qos:
                more = two_bytes(data, start + width + stride, stride, count)
                if 0 in more:
                    del more[more.index(0) :]
                    count = len(more)
                ids += more
            length = end - payload_at
            payloads += pieces(data, payload_at + stride, stride, count, length)
            end += count * stride
            stride = 0
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
        step = max(step * _GROWTH, _FIRST_STEP)
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


def pieces(data: bytes, at: int, stride: int, count: int, length: int) -> list[bytes]:
    """``length`` bytes at ``at`` and ``count - 1`` times ``stride`` on."""
    return [
        data[place : place + length] for place in range(at, at + count * stride, stride)
    ]


def _alike(
    data: bytes, at: int, stride: int, head: bytes, zeros: Sequence[int], count: int
) -> int:
    """As ``alike``, for at most ``count`` packets, all looked at."""
    if count <= _FEW:
        return _one_by_one(data, at, stride, head, zeros, count)
    if len(head) > _MANY_COLUMNS:
        heads = pieces(data, at, stride, count, len(head))
        unlike = count - heads.count(head)
        good = next(i for i in range(count) if heads[i] != head) if unlike else count
        columns = [(i, b"\0") for i in zeros]
    else:
        good = count
        columns = [(i, head[i : i + 1]) for i in range(len(head))]
        columns += [(i, b"\0") for i in zeros]
    stop = at + (count - 1) * stride + 1
    for i, byte in columns:
        behind = data[at + i : stop + i : stride].lstrip(byte)
        if behind:
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
