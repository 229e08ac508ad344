"""What follows the fixed header, for every packet that is not read in runs.

Each function reads one kind of packet and raises Malformed. What concerns more than
one packet, or needs an answer of its own (an empty client id, a filter that is not
one), is for those who know the session.
"""

from __future__ import annotations

from collections.abc import Sized
from functools import lru_cache
from typing import Final

from penstock.wire.mqtt import reasons
from penstock.wire.mqtt.connection import Side
from penstock.wire.mqtt.kinds import DUP, RETAIN, PacketKind
from penstock.wire.mqtt.packets import (
    Ack,
    Acks,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Publishes,
    RequestedFilter,
    Suback,
    SubscribePacket,
    Unsuback,
    UnsubscribePacket,
    WillPacket,
)
from penstock.wire.mqtt.primitives import PacketBody
from penstock.wire.mqtt.properties import (
    PROPERTIES,
    WILL_PROPERTIES,
    Properties,
    Property,
    parse_properties,
)
from penstock.wire.mqtt.reasons import Malformed, Reason

PROTOCOL_NAMES: Final = {3: b"MQIsdp", 4: b"MQTT", 5: b"MQTT"}
SHARED: Final = "$share/"

# Names that are not decoded each time: some 4 MiB at most.
_KEPT_TOPICS: Final = 8192
KEPT_BYTES: Final = 200

_ACK_REASONS: Final = {
    PacketKind.PUBACK: reasons.RECEIVED,
    PacketKind.PUBREC: reasons.RECEIVED,
    PacketKind.PUBREL: reasons.RELEASED,
    PacketKind.PUBCOMP: reasons.RELEASED,
}
# What only the other side may say: MQTT-3.3.4-6, MQTT-3.14.2-2.
_NEVER: Final = {
    (Side.CLIENT, PacketKind.PUBLISH): Property.SUBSCRIPTION_IDENTIFIER,
    (Side.CLIENT, PacketKind.DISCONNECT): Property.SERVER_REFERENCE,
    (Side.SERVER, PacketKind.DISCONNECT): Property.SESSION_EXPIRY_INTERVAL,
}
_DISCONNECT_REASONS: Final = {
    Side.CLIENT: reasons.CLIENT_DISCONNECT,
    Side.SERVER: reasons.SERVER_DISCONNECT,
}
_AUTH_REASONS: Final = {
    Side.CLIENT: reasons.CLIENT_AUTH,
    Side.SERVER: reasons.SERVER_AUTH,
}


def read_topic(field: bytes) -> str:
    """The topic of a PUBLISH from a field, its length included; raises Malformed.

    It may be empty. Names that fit in ``KEPT_BYTES`` are better asked of ``topic_of``.
    """
    try:
        topic = field[2:].decode()
    except UnicodeDecodeError as error:
        text = f"PUBLISH has a topic that is not UTF-8 (byte {error.start})"
        raise Malformed(Reason.MALFORMED_PACKET, text) from None
    return _no_filter(topic, "PUBLISH")


def _no_filter(topic: str, packet: str) -> str:
    """``topic`` if it names one; raises Malformed."""
    # MQTT-3.3.2-2, MQTT-4.7.0-1 and MQTT-4.7.3-2
    for bad, name in (("#", "#"), ("+", "+"), ("\0", "a NUL character")):
        if bad in topic:
            text = f"{packet} has topic {topic[:80]!a}, which contains {name}"
            raise Malformed(Reason.MALFORMED_PACKET, text)
    return topic


# Clients use the same few over and over.
topic_of = lru_cache(_KEPT_TOPICS)(read_topic)


def client_id_bytes(body: PacketBody, version: int) -> int:
    """How long a client id says it is, of a CONNECT behind its protocol level."""
    body.byte()
    body.two_bytes()
    _properties(body, PacketKind.CONNECT, version)
    return body.two_bytes()


def connect(body: PacketBody, version: int) -> Connect:
    """A CONNECT behind its protocol level."""
    flags = body.byte()
    _check_connect_flags(body, flags, version)
    keep_alive = body.two_bytes()
    properties = _properties(body, PacketKind.CONNECT, version)
    # MQTT-3.1.3-1: in this order.
    client_id = body.text()
    will = _will(body, flags, version) if flags & 0x04 else None
    user = body.text() if flags & 0x80 else None
    password = body.binary() if flags & 0x40 else None
    body.finish()
    return Connect(
        version=version,
        client_id=client_id,
        clean_start=bool(flags & 0x02),
        keep_alive=keep_alive,
        user=user,
        password=password,
        will=will,
        properties=properties,
    )


def _check_connect_flags(body: PacketBody, flags: int, version: int) -> None:
    if flags & 0x01:
        raise body.malformed("its reserved flag set")  # MQTT-3.1.2-3
    if not flags & 0x04 and flags & 0x38:
        raise body.malformed("flags of a will without one")  # MQTT-3.1.2-11, -13
    if flags & 0x18 == 0x18:
        raise body.malformed("a will of QoS 3")  # MQTT-3.1.2-12
    if flags & 0xC0 == 0x40 and version < 5:
        raise body.malformed("a password without a user name")  # 3.1.1: MQTT-3.1.2-22


def _will(body: PacketBody, flags: int, version: int) -> WillPacket:
    properties = parse_properties(body, WILL_PROPERTIES) if version == 5 else {}
    topic = _no_filter(body.text(), body.packet)  # MQTT-3.1.3-11
    if not topic:
        raise body.malformed("a will without a topic")  # MQTT-4.7.3-1
    return WillPacket(
        topic=topic,
        payload=body.binary(),
        qos=flags >> 3 & 3,
        retain=bool(flags & 0x20),
        properties=properties,
    )


def connack(body: PacketBody, version: int) -> Connack:
    flags, code = body.byte(), body.byte()
    if flags > 1:
        raise body.malformed(f"flags 0x{flags:02x}")  # MQTT-3.2.2-1
    if version == 5:
        reason = reasons.checked(code, reasons.CONNACK, body.packet)
    elif code < len(reasons.OLD_REASONS):
        reason = reasons.OLD_REASONS[code]
    else:
        raise body.malformed(f"return code {code}")
    properties = _properties(body, PacketKind.CONNACK, version)
    body.finish()
    return Connack(session_present=bool(flags), reason=reason, properties=properties)


def publish(body: PacketBody, first: int, version: int, side: Side) -> Publishes:
    """A PUBLISH by itself."""
    qos = first >> 1 & 3
    topic = read_topic(body.field())
    packet_id = _packet_id(body) if qos else 0  # MQTT-2.2.1-2
    properties = _publish_properties(body, version, side)
    if not topic and Property.TOPIC_ALIAS not in properties:
        raise body.wrong("neither a topic nor an alias of one")
    return Publishes(
        topic=topic,
        qos=qos,
        retain=bool(first & RETAIN),
        dup=bool(first & DUP),
        payloads=[body.rest()],
        packet_ids=[packet_id] if qos else None,
        properties=properties or None,
    )


def _publish_properties(body: PacketBody, version: int, side: Side) -> Properties:
    if version < 5:
        return {}
    allowed = PROPERTIES[PacketKind.PUBLISH]
    many = side is Side.SERVER
    properties = parse_properties(body, allowed, many_identifiers=many)
    _check_side(body, PacketKind.PUBLISH, side, properties)
    return properties


def ack(body: PacketBody, kind: PacketKind, version: int) -> Acks | Ack:
    """One PUBACK, PUBREC, PUBREL or PUBCOMP."""
    packet_id = _packet_id(body)
    reason = Reason.SUCCESS
    properties: Properties = {}
    if version == 5 and body.at < body.end:
        reason = reasons.checked(body.byte(), _ACK_REASONS[kind], body.packet)
        if body.at < body.end:
            properties = parse_properties(body, PROPERTIES[kind])
    body.finish()
    if reason < reasons.FIRST_FAILURE and not properties:
        return Acks(kind=kind, packet_ids=[packet_id])
    return Ack(kind=kind, packet_id=packet_id, reason=reason, properties=properties)


def subscribe(
    body: PacketBody, version: int, max_filters: int | None = None
) -> SubscribePacket:
    packet_id = _packet_id(body)
    properties = _properties(body, PacketKind.SUBSCRIBE, version)
    filters: list[RequestedFilter] = []
    while body.at < body.end:
        filters.append(_wanted(body, version))
        _check_count(body, filters, max_filters)
    if not filters:
        raise body.wrong("no filter")  # MQTT-3.8.3-2
    return SubscribePacket(packet_id=packet_id, filters=filters, properties=properties)


def _wanted(body: PacketBody, version: int) -> RequestedFilter:
    filter = _filter(body)
    options = body.byte()
    if options & (0xC0 if version == 5 else 0xFC):
        raise body.malformed(f"options 0x{options:02x}")  # MQTT-3.8.3-5
    qos, handling = options & 0x03, options >> 4
    if qos == 3:
        raise body.wrong("a filter with QoS 3")
    if handling == 3:
        raise body.wrong("a filter with retain handling 3")
    no_local = bool(options & 0x04)
    if no_local and filter.startswith(SHARED):
        raise body.wrong("a shared subscription with no local")  # MQTT-3.8.3-4
    return RequestedFilter(filter, qos, no_local, bool(options & 0x08), handling)


def unsubscribe(
    body: PacketBody, version: int, max_filters: int | None = None
) -> UnsubscribePacket:
    packet_id = _packet_id(body)
    properties = _properties(body, PacketKind.UNSUBSCRIBE, version)
    filters: list[str] = []
    while body.at < body.end:
        filters.append(_filter(body))
        _check_count(body, filters, max_filters)
    if not filters:
        raise body.wrong("no filter")  # MQTT-3.10.3-2
    return UnsubscribePacket(
        packet_id=packet_id, filters=filters, properties=properties
    )


def _check_count(body: PacketBody, filters: Sized, most: int | None) -> None:
    if most is not None and len(filters) > most:
        text = f"{body.packet} has more than {most} filters"
        raise Malformed(Reason.QUOTA_EXCEEDED, text)


def suback(body: PacketBody, version: int) -> Suback:
    packet_id = _packet_id(body)
    properties = _properties(body, PacketKind.SUBACK, version)
    codes = [reasons.checked(code, reasons.SUBACK, body.packet) for code in body.rest()]
    return Suback(packet_id=packet_id, reasons=[*codes], properties=properties)


def unsuback(body: PacketBody, version: int) -> Unsuback:
    packet_id = _packet_id(body)
    properties = _properties(body, PacketKind.UNSUBACK, version)
    if version < 5:
        body.finish()
    rest = body.rest()
    codes = [reasons.checked(code, reasons.UNSUBACK, body.packet) for code in rest]
    return Unsuback(packet_id=packet_id, reasons=[*codes], properties=properties)


def disconnect(body: PacketBody, version: int, side: Side) -> Disconnect:
    allowed = _DISCONNECT_REASONS[side]
    reason, properties = _reason(body, PacketKind.DISCONNECT, version, side, allowed)
    return Disconnect(reason=reason, properties=properties)


def auth(body: PacketBody, version: int, side: Side) -> Auth:
    allowed = _AUTH_REASONS[side]
    reason, properties = _reason(body, PacketKind.AUTH, version, side, allowed)
    return Auth(reason=reason, properties=properties)


def _reason(
    body: PacketBody,
    kind: PacketKind,
    version: int,
    side: Side,
    allowed: frozenset[Reason],
) -> tuple[Reason, Properties]:
    """A reason and properties, if they are not left out; and nothing else."""
    properties: Properties = {}
    said = version == 5 and body.at < body.end
    reason = reasons.checked(body.byte() if said else 0, allowed, body.packet)
    if said and body.at < body.end:
        properties = parse_properties(body, PROPERTIES[kind])
        _check_side(body, kind, side, properties)
    body.finish()
    return reason, properties


def _packet_id(body: PacketBody) -> int:
    packet_id = body.two_bytes()
    if not packet_id:
        raise body.wrong("packet identifier 0")  # MQTT-2.2.1-3, MQTT-2.2.1-4
    return packet_id


def _filter(body: PacketBody) -> str:
    filter = body.text()  # MQTT-3.8.3-1, MQTT-3.10.3-1
    if not filter:
        raise body.malformed("an empty filter")  # MQTT-4.7.3-1
    return filter


def _properties(body: PacketBody, kind: PacketKind, version: int) -> Properties:
    return parse_properties(body, PROPERTIES[kind]) if version == 5 else {}


def _check_side(
    body: PacketBody, kind: PacketKind, side: Side, properties: Properties
) -> None:
    never = _NEVER.get((side, kind))
    if never is not None and never in properties:
        raise body.wrong(f"{never.name}, which a {side.value} does not send")
