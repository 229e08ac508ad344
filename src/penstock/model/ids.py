"""Generated event ids: UUIDv7, one random draw per batch.

A batch draws one UUIDv7, its *id base*; the event ``delta`` offsets behind the
batch's base offset has the id ``base + delta``. The top bit of the low 32 bits is
cleared in the base, so adding an offset never carries further than these 32 bits:
RFC 9562 calls this a fixed-length dedicated counter (section 6.2, method 1).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from struct import pack

ID_BYTES = 16
RANDOM_BYTES = 10
_COUNTER_TOP_BIT = 1 << 31
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


def id_base(timestamp_ms: int, random: bytes) -> bytes:
    """A UUIDv7 to count from; ``random`` gives RANDOM_BYTES of entropy."""
    low = int.from_bytes(random[:RANDOM_BYTES], "big")
    rand_a = low >> 68
    rand_b = low & ((1 << 62) - 1) & ~_COUNTER_TOP_BIT
    millis = timestamp_ms & ((1 << 48) - 1)
    value = (millis << 80) | (7 << 76) | ((rand_a & 0xFFF) << 64) | (2 << 62) | rand_b
    return value.to_bytes(ID_BYTES, "big")


def advance(base: bytes, delta: int) -> bytes:
    """The id base of a batch that starts ``delta`` offsets further on."""
    return (int.from_bytes(base, "big") + delta).to_bytes(ID_BYTES, "big")


def event_id(base: bytes, delta: int) -> str:
    """The generated id of the event ``delta`` offsets behind the base, as text."""
    text = advance(base, delta).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def event_ids(base: bytes, deltas: Sequence[int]) -> list[str]:
    """What ``event_id`` gives for each of ascending deltas; they differ at the end."""
    low = int.from_bytes(base[-4:], "big")
    if not deltas or low + deltas[-1] >> 32:
        return [event_id(base, delta) for delta in deltas]
    head = event_id(base, 0)[:-8]
    digits = pack(f">{len(deltas)}I", *[low + delta for delta in deltas]).hex()
    return [head + digits[at : at + 8] for at in range(0, len(digits), 8)]
