"""Which packet may come when: a table for each side, and words for all others.

A client says CONNECT first and once, and nothing behind DISCONNECT. What is not in the
table of the state is a protocol error. Parsers ask for the first byte of a packet, so
flags that its kind cannot have are found on the same way.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Final

from penstock.wire.mqtt.kinds import PacketKind, flags
from penstock.wire.mqtt.reasons import Malformed, Reason


class ConnectionState(Enum):
    NEW = "new"
    OPEN = "open"
    OVER = "over"


class Side(Enum):
    """Who sends."""

    CLIENT = "client"
    SERVER = "server"


# What may come in each state, and the state behind it.
TABLE: Final[dict[Side, dict[ConnectionState, dict[PacketKind, ConnectionState]]]] = {
    Side.CLIENT: {
        # MQTT-3.1.0-1
        ConnectionState.NEW: {PacketKind.CONNECT: ConnectionState.OPEN},
        # MQTT-3.1.0-2: no second CONNECT.
        ConnectionState.OPEN: {
            PacketKind.PUBLISH: ConnectionState.OPEN,
            PacketKind.PUBACK: ConnectionState.OPEN,
            PacketKind.PUBREC: ConnectionState.OPEN,
            PacketKind.PUBREL: ConnectionState.OPEN,
            PacketKind.PUBCOMP: ConnectionState.OPEN,
            PacketKind.SUBSCRIBE: ConnectionState.OPEN,
            PacketKind.UNSUBSCRIBE: ConnectionState.OPEN,
            PacketKind.PINGREQ: ConnectionState.OPEN,
            PacketKind.DISCONNECT: ConnectionState.OVER,
            PacketKind.AUTH: ConnectionState.OPEN,
        },
        # MQTT-3.14.4-1
        ConnectionState.OVER: {},
    },
    Side.SERVER: {
        # MQTT-3.2.0-1, MQTT-3.14.0-1
        ConnectionState.NEW: {
            PacketKind.CONNACK: ConnectionState.OPEN,
            PacketKind.AUTH: ConnectionState.NEW,
        },
        ConnectionState.OPEN: {
            PacketKind.PUBLISH: ConnectionState.OPEN,
            PacketKind.PUBACK: ConnectionState.OPEN,
            PacketKind.PUBREC: ConnectionState.OPEN,
            PacketKind.PUBREL: ConnectionState.OPEN,
            PacketKind.PUBCOMP: ConnectionState.OPEN,
            PacketKind.SUBACK: ConnectionState.OPEN,
            PacketKind.UNSUBACK: ConnectionState.OPEN,
            PacketKind.PINGRESP: ConnectionState.OPEN,
            PacketKind.DISCONNECT: ConnectionState.OVER,
            PacketKind.AUTH: ConnectionState.OPEN,
        },
        ConnectionState.OVER: {},
    },
}
_WORDS: Final = {
    (Side.CLIENT, ConnectionState.NEW): "comes before CONNECT",
    (Side.SERVER, ConnectionState.NEW): "comes before CONNACK",
    (Side.CLIENT, ConnectionState.OPEN): "is nothing that a client sends now",
    (Side.SERVER, ConnectionState.OPEN): "is nothing that a server sends now",
    (Side.CLIENT, ConnectionState.OVER): "comes behind DISCONNECT",
    (Side.SERVER, ConnectionState.OVER): "comes behind DISCONNECT",
}


@cache
def first_bytes(
    side: Side, state: ConnectionState, version: int
) -> tuple[PacketKind | None, ...]:
    """The kind of packet for each first byte; None where none may come."""
    kinds: list[PacketKind | None] = [None] * 256
    for kind in TABLE[side][state]:
        if _exists(kind, side, version):
            for flag in flags(kind, version):
                kinds[kind << 4 | flag] = kind
    return tuple(kinds)


def refusal(first: int, side: Side, state: ConnectionState, version: int) -> Malformed:
    """Why no packet may begin with the byte ``first``."""
    if first < 0x10:
        return Malformed(Reason.MALFORMED_PACKET, "packet of type 0")
    kind = PacketKind(first >> 4)
    if kind not in TABLE[side][state] or not _exists(kind, side, version):
        text = f"{kind.name} {_WORDS[side, state]}"
        return Malformed(Reason.PROTOCOL_ERROR, text)
    text = f"{kind.name} has flags 0x{first & 0xF:x}, which it cannot have"
    return Malformed(Reason.MALFORMED_PACKET, text)


def _exists(kind: PacketKind, side: Side, version: int) -> bool:
    """Whether a version has this packet in this direction; 0 is: not known yet."""
    if kind is PacketKind.AUTH:
        return version == 5
    return kind is not PacketKind.DISCONNECT or side is Side.CLIENT or version == 5
