"""What a client sends, as bytes: for tests, and for programs that talk to a server.

PUBLISHes and acknowledgements are the same from both sides: see ``rendering``.
"""

from __future__ import annotations

from typing import Final

from penstock.wire.mqtt import rendering
from penstock.wire.mqtt.bodies import PROTOCOL_NAMES
from penstock.wire.mqtt.kinds import PacketKind, first_byte
from penstock.wire.mqtt.packets import (
    Ack,
    Acks,
    Connect,
    Publishes,
    RequestedFilter,
    SubscribePacket,
    UnsubscribePacket,
    WillPacket,
)
from penstock.wire.mqtt.primitives import binary, text
from penstock.wire.mqtt.properties import Properties, render_properties

PINGREQ: Final = bytes((first_byte(PacketKind.PINGREQ), 0))


def render_connect(connect: Connect) -> bytes:
    """The first packet of a client."""
    will = connect.will
    flags = (
        (connect.user is not None) << 7
        | (connect.password is not None) << 6
        | connect.clean_start << 1
    )
    if will is not None:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
    rest = (
        binary(PROTOCOL_NAMES[connect.version])
        + bytes((connect.version, flags))
        + connect.keep_alive.to_bytes(2, "big")
        + _properties(connect.version, connect.properties)
        + text(connect.client_id)
        + (b"" if will is None else _will(connect.version, will))
        + (b"" if connect.user is None else text(connect.user))
        + (b"" if connect.password is None else binary(connect.password))
    )
    return rendering.packet(PacketKind.CONNECT, rest)


def render_publish(version: int, publishes: Publishes) -> bytes:
    """A run of PUBLISHes as it was parsed, from either side."""
    properties = publishes.properties or {}
    return rendering.render_publishes(
        publishes.topic.encode(),
        publishes.payloads,
        qos=publishes.qos,
        retain=publishes.retain,
        dup=publishes.dup,
        packet_ids=publishes.packet_ids,
        properties=render_properties(properties) if version == 5 else None,
    )


def render_answer(version: int, answer: Acks | Ack) -> bytes:
    """Acknowledgements as they were parsed, from either side."""
    if isinstance(answer, Acks):
        return rendering.render_acks(answer.kind, answer.packet_ids)
    return rendering.render_ack(
        answer.kind, answer.packet_id, answer.reason, answer.properties, version
    )


def render_subscribe(version: int, subscribe: SubscribePacket) -> bytes:
    rest = (
        subscribe.packet_id.to_bytes(2, "big")
        + _properties(version, subscribe.properties)
        + b"".join(map(_wanted, subscribe.filters))
    )
    return rendering.packet(PacketKind.SUBSCRIBE, rest)


def render_unsubscribe(version: int, unsubscribe: UnsubscribePacket) -> bytes:
    rest = (
        unsubscribe.packet_id.to_bytes(2, "big")
        + _properties(version, unsubscribe.properties)
        + b"".join(map(text, unsubscribe.filters))
    )
    return rendering.packet(PacketKind.UNSUBSCRIBE, rest)


def render_disconnect(
    version: int, reason: int = 0, properties: Properties | None = None
) -> bytes:
    """The last packet of a client; before version 5 it says no more than that."""
    if version < 5:
        return rendering.disconnect(0, {})
    return rendering.disconnect(reason, properties or {})


def _will(version: int, will: WillPacket) -> bytes:
    properties = _properties(version, will.properties)
    return properties + text(will.topic) + binary(will.payload)


def _wanted(wanted: RequestedFilter) -> bytes:
    options = (
        wanted.qos
        | wanted.no_local << 2
        | wanted.retain_as_published << 3
        | wanted.retain_handling << 4
    )
    return text(wanted.filter) + options.to_bytes(1, "big")


def _properties(version: int, properties: Properties) -> bytes:
    return render_properties(properties) if version == 5 else b""
