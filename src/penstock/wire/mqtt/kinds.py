"""Kinds of packets, and the first byte that each may begin with.

The upper half of the first byte is the kind. The lower half is flags, which only
PUBLISH uses: 0x8 is DUP, 0x6 the QoS, 0x1 RETAIN. All others have fixed ones.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class PacketKind(IntEnum):
    """Every packet, by its number."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


DUP: Final = 0x08
RETAIN: Final = 0x01

# QoS 3 does not exist (MQTT-3.3.1-4), and what is sent at most once is never a
# duplicate (MQTT-3.3.1-2).
_PUBLISH_FLAGS: Final = (0x0, 0x1, 0x2, 0x3, 0x4, 0x5, 0xA, 0xB, 0xC, 0xD)
# MQTT-3.6.1-1, MQTT-3.8.1-1, MQTT-3.10.1-1
_MARKED: Final = (PacketKind.PUBREL, PacketKind.SUBSCRIBE, PacketKind.UNSUBSCRIBE)


def flags(kind: PacketKind, version: int) -> tuple[int, ...]:
    """The flags that ``kind`` may have (MQTT-2.1.3-1)."""
    if kind is PacketKind.PUBLISH:
        return _PUBLISH_FLAGS
    if kind in _MARKED:
        # MQTT 3.1 knows duplicates of these too.
        return (0x2, 0xA) if version == 3 else (0x2,)
    return (0x0,)


def first_byte(kind: PacketKind) -> int:
    """The first byte of a packet that has no flags to choose."""
    return kind << 4 | flags(kind, 4)[0]
