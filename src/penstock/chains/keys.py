"""Numbers that stand for ids in the index; two ids may share one.

The key of an id of the form of a UUIDv7 begins with its time: what is caused soon after
its cause stands beside its contemporaries in the index, so a long history is not
touched when something is added. For the same reason numbered ids (``order-17``) stand
together: the key of any other text is a hash of what is in front of its last digits,
then these digits, below zero.

All generated ids of a batch share their first 96 bits (model/ids.py), so one key
stands for the batch.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

_UUID_CHARACTERS = 36
_VERSION_AT = 14
_MILLIS_MASK = (1 << 47) - 1
_DIGITS = "0123456789"
# Nine digits fit into 30 bits; 33 are left for the hash.
_MAX_DIGITS = 9


def text_key(text: str) -> int:
    """The key of any id; the same for the same text."""
    value = uuid_value(text)
    if value is not None:
        return (value >> 80 & _MILLIS_MASK) << 16 | value & 0xFFFF
    head = text.rstrip(_DIGITS)
    if len(text) - len(head) > _MAX_DIGITS:
        head = text[:-_MAX_DIGITS]
    return -1 - (_high(head) << 30 | int(text[len(head) :] or 0))


@lru_cache(1024)
def _high(head: str) -> int:
    """33 bits for what numbered ids begin with; many in a row begin with the same."""
    digest = blake2b(head.encode(), digest_size=5).digest()
    return int.from_bytes(digest, "big") >> 7


def batch_key(value: int) -> int:
    """The key of the batch that a generated id belongs to: time and 12 random bits."""
    return (value >> 80 & _MILLIS_MASK) << 12 | value >> 64 & 0xFFF


def uuid_value(text: str) -> int | None:
    """The 128 bits of what looks like a UUIDv7; a hit has to be compared as text."""
    if len(text) != _UUID_CHARACTERS or text[_VERSION_AT] != "7":
        return None
    try:
        return int(text.replace("-", ""), 16)
    except ValueError:
        return None
