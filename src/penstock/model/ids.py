"""Generated event ids: UUIDv7, one random draw per batch.

A batch draws one UUIDv7, its *id base*; the event ``delta`` offsets behind the
batch's base offset has the id ``base + delta``. The top bit of the low 32 bits is
cleared in the base, so adding an offset never carries further than these 32 bits:
RFC 9562 calls this a fixed-length dedicated counter (section 6.2, method 1).

Where batches were gathered, the ids say when each event came: the time of an id is that
of its event, and only the other 80 bits are counted on from the base.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from operator import add
from struct import pack
from typing import TypeVar

K = TypeVar("K")

ID_BYTES = 16
RANDOM_BYTES = 10
_COUNTER_TOP_BIT = 1 << 31
_TIME_MASK = (1 << 48) - 1
_COUNTED_BITS = 80
_COUNTED_MASK = (1 << _COUNTED_BITS) - 1
_LOW_MASK = (1 << 32) - 1
# Asked of the kernel at once: a call for each draw takes longer than the rest of an id.
_ENTROPY_BYTES = 1 << 12


class Entropy:
    """Random bytes of the kernel, a block at a time, for one thread.

    No byte is handed out twice; a forked process must not go on with it.
    """

    def __init__(self) -> None:
        self._block = b""
        self._at = 0

    def __call__(self, size: int) -> bytes:
        at, end = self._at, self._at + size
        if end > len(self._block):
            self._block = os.urandom(max(size, _ENTROPY_BYTES))
            at, end = 0, size
        self._at = end
        return self._block[at:end]


def low_id(random: bytes) -> int:
    """What ids have below their time, to count from; of RANDOM_BYTES of entropy."""
    drawn = int.from_bytes(random[:RANDOM_BYTES], "big")
    rand_a = drawn >> 68 & 0xFFF
    rand_b = drawn & ((1 << 61) - 1) & ~_COUNTER_TOP_BIT
    return 7 << 76 | rand_a << 64 | 2 << 62 | rand_b


def id_base(timestamp_ms: int, low: int) -> bytes:
    """The UUIDv7 of an event of that time, with ``low`` below it."""
    value = (timestamp_ms & _TIME_MASK) << _COUNTED_BITS | low
    return value.to_bytes(ID_BYTES, "big")


def is_of(base: bytes, timestamp_ms: int) -> bool:
    """Whether an id base says this time."""
    return int.from_bytes(base[:6], "big") == timestamp_ms & _TIME_MASK


def advance(base: bytes, delta: int) -> bytes:
    """The id base of a batch that starts ``delta`` offsets further on."""
    return (int.from_bytes(base, "big") + delta).to_bytes(ID_BYTES, "big")


def event_id(base: bytes, delta: int) -> str:
    """The generated id of the event ``delta`` offsets behind the base, as text."""
    return _text(advance(base, delta))


def event_ids(base: bytes, deltas: Sequence[int]) -> list[str]:
    """What ``event_id`` gives for each of ascending deltas; they differ at the end."""
    low = int.from_bytes(base[-4:], "big")
    if not deltas or low + deltas[-1] >> 32:
        return [event_id(base, delta) for delta in deltas]
    head = event_id(base, 0)[:-8]
    digits = pack(f">{len(deltas)}I", *[low + delta for delta in deltas]).hex()
    return [head + digits[at : at + 8] for at in range(0, len(digits), 8)]


def counted(base: bytes, delta: int) -> int:
    """The part of a generated id that does not say a time: its low 80 bits."""
    return (int.from_bytes(base, "big") + delta) & _COUNTED_MASK


def distance(base: bytes, value: int) -> int:
    """How far an id counts on from a base, whatever their times are."""
    return (value & _COUNTED_MASK) - counted(base, 0)


def at_time(value: int, timestamp_ms: int) -> int:
    """The id of that number at another time."""
    return (timestamp_ms & _TIME_MASK) << _COUNTED_BITS | value & _COUNTED_MASK


def event_id_at(base: bytes, delta: int, timestamp_ms: int) -> str:
    """The generated id of an event, as text, if it says that event's own time."""
    return text_of(timestamp_ms, counted(base, delta))


def event_ids_at(
    base: bytes, deltas: Sequence[int], timestamps: Sequence[int]
) -> list[str]:
    """What ``event_id_at`` gives for each of ascending deltas and its time."""
    low = int.from_bytes(base[-4:], "big")
    if not deltas or low + deltas[-1] >> 32:
        each = zip(deltas, timestamps, strict=True)
        return [event_id_at(base, delta, time) for delta, time in each]
    middle = event_id(base, 0)[13:-8]
    heads = {}
    for time in set(timestamps):
        text = f"{time & _TIME_MASK:012x}"
        heads[time] = f"{text[:8]}-{text[8:]}{middle}"
    digits = pack(f">{len(deltas)}I", *[low + delta for delta in deltas]).hex()
    places = zip(timestamps, range(0, len(digits), 8), strict=True)
    return [heads[time] + digits[at : at + 8] for time, at in places]


def text_of(timestamp_ms: int, low: int) -> str:
    """The id with that time, and ``low`` below it."""
    return _text(id_base(timestamp_ms, low))


def texts_of(
    lows: Mapping[K, int],
    keys: Sequence[K],
    counts: Sequence[int],
    timestamps: Sequence[int],
) -> list[str]:
    """For each key the id that counts so far from its own ``low``."""
    time = timestamps[0]
    same = timestamps.count(time) == len(timestamps)
    if not same or max(counts) + max(low & _LOW_MASK for low in lows.values()) >> 32:
        rows = zip(keys, counts, timestamps, strict=True)
        return [text_of(time, lows[key] + count) for key, count, time in rows]
    heads = {key: text_of(time, low)[:-8] for key, low in lows.items()}
    ends = {key: low & _LOW_MASK for key, low in lows.items()}
    numbers = map(add, map(ends.__getitem__, keys), counts)
    digits = pack(f">{len(keys)}I", *numbers).hex()
    return [
        head + digits[at : at + 8]
        for head, at in zip(
            map(heads.__getitem__, keys), range(0, len(digits), 8), strict=True
        )
    ]


def _text(value: bytes) -> str:
    text = value.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
