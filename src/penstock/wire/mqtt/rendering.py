"""What a server sends, as bytes: many packets at once where there are many.

A PUBLISH:

    offset  size  field
    0       1     0x30, DUP 0x08, QoS 0x06, RETAIN 0x01
    1       1-4   length of the rest
    …       2+n   topic
    …       2     packet identifier, if the QoS is not 0
    …       1+n   properties, in version 5
    …       n     payload

Packets of one topic differ in few places, so they are joined from lists that repeat
what is the same: nothing in Python is done per packet.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from penstock.wire.mqtt.kinds import DUP, PacketKind, first_byte
from penstock.wire.mqtt.primitives import binary, varint
from penstock.wire.mqtt.properties import Properties, render_properties
from penstock.wire.mqtt.reasons import (
    FIRST_FAILURE,
    OLD_CONNACK,
    OLD_NOT_AUTHORIZED,
    Reason,
)

PINGRESP: Final = bytes((first_byte(PacketKind.PINGRESP), 0))
NO_PROPERTIES: Final = b"\0"

_PUBLISH: Final = PacketKind.PUBLISH << 4
_ACKS: Final = {
    kind: bytes((first_byte(kind), 2))
    for kind in (
        PacketKind.PUBACK,
        PacketKind.PUBREC,
        PacketKind.PUBREL,
        PacketKind.PUBCOMP,
    )
}
# From so many acknowledgements on columns are cheaper than joining.
_FEW: Final = 16


def render_publishes(
    topic: bytes,
    payloads: Sequence[bytes],
    *,
    qos: int,
    retain: bool = False,
    dup: bool = False,
    packet_ids: Sequence[int] | None = None,
    properties: bytes | None = None,
) -> bytes:
    """PUBLISHes of one topic.

    ``packet_ids``: as many as payloads, if ``qos`` is not 0. ``properties``: None
    before version 5, otherwise rendered already (``NO_PROPERTIES`` if there are none).
    """
    first = _PUBLISH | qos << 1 | retain | DUP * dup
    field = binary(topic)
    tail = properties or b""
    extra = len(field) + len(tail) + (2 if qos else 0)
    if len(payloads) == 1:
        length = header(first, extra + len(payloads[0]))
        id = packet_ids[0].to_bytes(2, "big") if packet_ids else b""
        return b"".join((length, field, id, tail, payloads[0]))
    lengths = [*map(len, payloads)]
    heads = {length: header(first, length + extra) + field for length in {*lengths}}
    if len(heads) == 1:
        return _equal(heads.popitem()[1], payloads, packet_ids, tail)
    columns: list[Iterable[bytes]] = [map(heads.__getitem__, lengths), payloads]
    if tail:
        columns.insert(1, (tail,) * len(payloads))
    if packet_ids is not None:
        columns.insert(1, map(_numbers().__getitem__, packet_ids))
    parts = [b""] * (len(payloads) * len(columns))
    for index, column in enumerate(columns):
        parts[index :: len(columns)] = column
    return b"".join(parts)


def render_acks(kind: PacketKind, packet_ids: Sequence[int]) -> bytes:
    """Acknowledgements of ``kind`` that say success."""
    count = len(packet_ids)
    head = _ACKS[kind]
    if count == 1:
        return head + packet_ids[0].to_bytes(2, "big")
    if count < _FEW:
        return b"".join([head + id.to_bytes(2, "big") for id in packet_ids])
    ids = struct.pack(f">{count}H", *packet_ids)
    acks = bytearray(head * (2 * count))
    acks[2::4] = ids[0::2]
    acks[3::4] = ids[1::2]
    return bytes(acks)


def render_ack(
    kind: PacketKind, packet_id: int, reason: int, properties: Properties, version: int
) -> bytes:
    """One acknowledgement; what a version cannot say is left out."""
    rest = packet_id.to_bytes(2, "big")
    if version == 5:
        rest += _reason(reason, properties)
    return packet(kind, rest)


def connack(
    version: int, reason: int, session_present: bool, properties: Properties
) -> bytes:
    """The answer to CONNECT; versions before 5 have return codes of their own."""
    # MQTT-3.2.2-6: no session with a refusal. MQTT 3.1 does not know the flag.
    present = session_present and reason == Reason.SUCCESS and version > 3
    if version == 5:
        rest = bytes((present, reason)) + render_properties(properties)
    else:
        rest = bytes((present, OLD_CONNACK.get(Reason(reason), OLD_NOT_AUTHORIZED)))
    return packet(PacketKind.CONNACK, rest)


def suback(
    version: int, packet_id: int, reasons: Sequence[int], properties: Properties
) -> bytes:
    """The answer to SUBSCRIBE, a reason for each filter (MQTT-3.8.4-6)."""
    rest = packet_id.to_bytes(2, "big")
    if version == 5:
        return packet(
            PacketKind.SUBACK, rest + render_properties(properties) + bytes(reasons)
        )
    old = [min(reason, FIRST_FAILURE) for reason in reasons]
    return packet(PacketKind.SUBACK, rest + bytes(old))


def unsuback(
    version: int, packet_id: int, reasons: Sequence[int], properties: Properties
) -> bytes:
    """The answer to UNSUBSCRIBE; without reasons before version 5."""
    rest = packet_id.to_bytes(2, "big")
    if version == 5:
        rest += render_properties(properties) + bytes(reasons)
    return packet(PacketKind.UNSUBACK, rest)


def disconnect(reason: int, properties: Properties) -> bytes:
    """The last packet of a server; versions before 5 have none, they close."""
    return packet(PacketKind.DISCONNECT, _reason(reason, properties))


def auth(reason: int, properties: Properties) -> bytes:
    """A step of a login that has several."""
    return packet(PacketKind.AUTH, _reason(reason, properties))


def packet(kind: PacketKind, rest: bytes) -> bytes:
    """``rest`` with the fixed header of ``kind``."""
    return header(first_byte(kind), len(rest)) + rest


def header(first: int, length: int) -> bytes:
    """The fixed header; raises LocalProtocolError if a packet cannot be that long."""
    if length < 0x80:
        return bytes((first, length))
    if length < 0x4000:
        return bytes((first, length & 0x7F | 0x80, length >> 7))
    return bytes((first,)) + varint(length)


def _equal(
    head: bytes, payloads: Sequence[bytes], ids: Sequence[int] | None, tail: bytes
) -> bytes:
    """PUBLISHes of equal length: identifiers are put in afterwards, in two columns."""
    if ids is None:
        head += tail
        return head + head.join(payloads)
    stride = len(head) + 2 + len(tail) + len(payloads[0])
    stream = bytearray(head + b"\0\0" + tail).join([b"", *payloads])
    numbers = struct.pack(f">{len(payloads)}H", *ids)
    stream[len(head) :: stride] = numbers[0::2]
    stream[len(head) + 1 :: stride] = numbers[1::2]
    return bytes(stream)


def _reason(reason: int, properties: Properties) -> bytes:
    """A reason and properties, as far as they must be said."""
    if properties:
        return reason.to_bytes(1, "big") + render_properties(properties)
    return reason.to_bytes(1, "big") if reason else b""


@cache
def _numbers() -> tuple[bytes, ...]:
    """Two bytes for every packet identifier. Some 3 MiB, made when first needed."""
    return tuple(number.to_bytes(2, "big") for number in range(1 << 16))
