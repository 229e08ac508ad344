"""Which packet may come when: a table for each side, and words for all others.

A client says CONNECT first and once, and nothing behind DISCONNECT. What is not in the
table of the state is a protocol error. Parsers ask for the first byte of a packet, so
flags that its kind cannot have are found on the same way.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import Final

from penstock.wire.mqtt.kinds import Kind, flags
from penstock.wire.mqtt.reasons import Malformed, Reason


class State(Enum):
    NEW = "new"
    OPEN = "open"
    OVER = "over"


class Side(Enum):
    """Who sends."""

    CLIENT = "client"
    SERVER = "server"


# What may come in each state, and the state behind it.
TABLE: Final[dict[Side, dict[State, dict[Kind, State]]]] = {
    Side.CLIENT: {
        # MQTT-3.1.0-1
        State.NEW: {Kind.CONNECT: State.OPEN},
        # MQTT-3.1.0-2: no second CONNECT.
        State.OPEN: {
            Kind.PUBLISH: State.OPEN,
            Kind.PUBACK: State.OPEN,
            Kind.PUBREC: State.OPEN,
            Kind.PUBREL: State.OPEN,
            Kind.PUBCOMP: State.OPEN,
            Kind.SUBSCRIBE: State.OPEN,
            Kind.UNSUBSCRIBE: State.OPEN,
            Kind.PINGREQ: State.OPEN,
            Kind.DISCONNECT: State.OVER,
            Kind.AUTH: State.OPEN,
        },
        # MQTT-3.14.4-1
        State.OVER: {},
    },
    Side.SERVER: {
        # MQTT-3.2.0-1, MQTT-3.14.0-1
        State.NEW: {Kind.CONNACK: State.OPEN, Kind.AUTH: State.NEW},
        State.OPEN: {
            Kind.PUBLISH: State.OPEN,
            Kind.PUBACK: State.OPEN,
            Kind.PUBREC: State.OPEN,
            Kind.PUBREL: State.OPEN,
            Kind.PUBCOMP: State.OPEN,
            Kind.SUBACK: State.OPEN,
            Kind.UNSUBACK: State.OPEN,
            Kind.PINGRESP: State.OPEN,
            Kind.DISCONNECT: State.OVER,
            Kind.AUTH: State.OPEN,
        },
        State.OVER: {},
    },
}
_WORDS: Final = {
    (Side.CLIENT, State.NEW): "comes before CONNECT",
    (Side.SERVER, State.NEW): "comes before CONNACK",
    (Side.CLIENT, State.OPEN): "is nothing that a client sends now",
    (Side.SERVER, State.OPEN): "is nothing that a server sends now",
    (Side.CLIENT, State.OVER): "comes behind DISCONNECT",
    (Side.SERVER, State.OVER): "comes behind DISCONNECT",
}


@cache
def first_bytes(side: Side, state: State, version: int) -> tuple[Kind | None, ...]:
    """The kind of packet for each first byte; None where none may come."""
    kinds: list[Kind | None] = [None] * 256
    for kind in TABLE[side][state]:
        if _exists(kind, side, version):
            for flag in flags(kind, version):
                kinds[kind << 4 | flag] = kind
    return tuple(kinds)


def refusal(first: int, side: Side, state: State, version: int) -> Malformed:
    """Why no packet may begin with the byte ``first``."""
    if first < 0x10:
        return Malformed(Reason.MALFORMED_PACKET, "packet of type 0")
    kind = Kind(first >> 4)
    if kind not in TABLE[side][state] or not _exists(kind, side, version):
        text = f"{kind.name} {_WORDS[side, state]}"
        return Malformed(Reason.PROTOCOL_ERROR, text)
    text = f"{kind.name} has flags 0x{first & 0xF:x}, which it cannot have"
    return Malformed(Reason.MALFORMED_PACKET, text)


def _exists(kind: Kind, side: Side, version: int) -> bool:
    """Whether a version has this packet in this direction; 0 is: not known yet."""
    if kind is Kind.AUTH:
        return version == 5
    return kind is not Kind.DISCONNECT or side is Side.CLIENT or version == 5
