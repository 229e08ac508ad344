"""Packets of a client as bytes, and packets of a server from bytes: strictly.

Written from the two specifications alone and used by nothing but these tests, so that
a mistake of the server's codec is not made twice. What ``read_packet`` does not object
to is well-formed: flags, lengths in the fewest bytes, properties that belong to their
packet, reason codes that are defined for it, no bytes left over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP = range(8, 14)
DISCONNECT, AUTH = 14, 15

PAYLOAD_FORMAT, MESSAGE_EXPIRY, CONTENT_TYPE = 1, 2, 3
RESPONSE_TOPIC, CORRELATION_DATA, SUBSCRIPTION_ID = 8, 9, 11
SESSION_EXPIRY, ASSIGNED_CLIENT_ID, SERVER_KEEP_ALIVE = 17, 18, 19
AUTH_METHOD, AUTH_DATA, REQUEST_PROBLEM = 21, 22, 23
WILL_DELAY, REQUEST_RESPONSE, RESPONSE_INFORMATION = 24, 25, 26
SERVER_REFERENCE, REASON_STRING, RECEIVE_MAXIMUM = 28, 31, 33
TOPIC_ALIAS_MAXIMUM, TOPIC_ALIAS, MAXIMUM_QOS = 34, 35, 36
RETAIN_AVAILABLE, USER_PROPERTY, MAXIMUM_PACKET_SIZE = 37, 38, 39
WILDCARDS_AVAILABLE, SUBSCRIPTION_IDS_AVAILABLE, SHARED_AVAILABLE = 40, 41, 42

BYTES = (1, 23, 25, 36, 37, 40, 41, 42)
SHORTS = (19, 33, 34, 35)
LONGS = (2, 17, 24, 39)
TEXTS = (3, 8, 18, 21, 26, 28, 31)
BINARIES = (9, 22)

# What a server may send: packet -> properties, packet -> reason codes.
ACKS = (PUBACK, PUBREC, PUBREL, PUBCOMP)
FROM_SERVER = {
    CONNACK: {17, 18, 19, 21, 22, 26, 28, 31, 33, 34, 36, 37, 38, 39, 40, 41, 42},
    PUBLISH: {1, 2, 3, 8, 9, 11, 35, 38},
    **dict.fromkeys((*ACKS, SUBACK, UNSUBACK), {31, 38}),
    DISCONNECT: {28, 31, 38},
    AUTH: {21, 22, 31, 38},
}
REASONS = {
    CONNACK: {0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0x9E), 0x9F},
    **dict.fromkeys(
        (PUBACK, PUBREC), {0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
    ),
    **dict.fromkeys((PUBREL, PUBCOMP), {0, 0x92}),
    SUBACK: {0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2},
    UNSUBACK: {0, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91},
    DISCONNECT: {0, *range(0x80, 0x84), 0x87, 0x89, 0x8B, *range(0x8D, 0x91)}
    | set(range(0x93, 0xA3)),
    AUTH: {0, 0x18},
}

Properties = Iterable[tuple[int, Any]]


class BadPacket(AssertionError):
    """The server sent what no server may send."""


@dataclass(kw_only=True)
class Packet:
    """One packet of a server; what its kind does not have is left as it is here."""

    kind: int
    size: int = 0
    packet_id: int = 0
    reason: int = 0
    reasons: list[int] = field(default_factory=list)
    session_present: bool = False
    topic: str = ""
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    dup: bool = False
    properties: list[tuple[int, Any]] = field(default_factory=list)

    def get(self, identifier: int, default: Any = None) -> Any:
        """The value of a property, or the default."""
        return next((v for key, v in self.properties if key == identifier), default)

    def all(self, identifier: int) -> list[Any]:
        """Every value of a property that may be there more than once."""
        return [value for key, value in self.properties if key == identifier]


@dataclass(kw_only=True)
class Will:
    topic: str
    payload: bytes = b"gone"
    qos: int = 0
    retain: bool = False
    properties: Properties = ()


@dataclass(kw_only=True)
class TopicFilter:
    """One filter of a SUBSCRIBE with its options."""

    filter: str
    qos: int = 0
    no_local: bool = False
    as_published: bool = False
    handling: int = 0

    @property
    def options(self) -> int:
        flags = self.no_local << 2 | self.as_published << 3
        return self.qos | flags | self.handling << 4


def varint(number: int) -> bytes:
    out = bytearray()
    while True:
        number, low = number >> 7, number & 0x7F
        out.append(low | (0x80 if number else 0))
        if not number:
            return bytes(out)


def short(number: int) -> bytes:
    return struct.pack(">H", number)


def binary(data: bytes) -> bytes:
    return short(len(data)) + data


def text(words: str) -> bytes:
    return binary(words.encode("utf-8", "surrogatepass"))


def one_property(identifier: int, value: Any) -> bytes:
    """A property; ``bytes`` in place of a text or number go out as they are."""
    head = varint(identifier)
    if identifier in BINARIES:
        return head + binary(value)
    if isinstance(value, bytes):
        return head + value
    if identifier == USER_PROPERTY:
        return head + text(value[0]) + text(value[1])
    if identifier == SUBSCRIPTION_ID:
        return head + varint(value)
    if identifier in TEXTS:
        return head + text(value)
    size = ">B" if identifier in BYTES else ">H" if identifier in SHORTS else ">I"
    return head + struct.pack(size, value)


def properties(pairs: Properties) -> bytes:
    """All of them, with their length in front."""
    data = b"".join(one_property(*pair) for pair in pairs)
    return varint(len(data)) + data


def packet(kind: int, body: bytes, *, flags: int = 0) -> bytes:
    return bytes([kind << 4 | flags]) + varint(len(body)) + body


def connect(
    client_id: str | bytes = "",
    *,
    version: int = 5,
    clean: bool = True,
    keep_alive: int = 0,
    pairs: Properties = (),
    will: Will | None = None,
    user: str | bytes | None = None,
    password: bytes | None = None,
    name: bytes | None = None,
    extra_flags: int = 0,
) -> bytes:
    """A CONNECT. A name or user given as bytes goes out without being encoded."""
    flags = clean << 1 | extra_flags
    payload = client_id if isinstance(client_id, bytes) else text(client_id)
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
        payload += properties(will.properties) if version == 5 else b""
        payload += text(will.topic) + binary(will.payload)
    if user is not None:
        flags |= 0x80
        payload += user if isinstance(user, bytes) else text(user)
    if password is not None:
        flags |= 0x40
        payload += binary(password)
    name = name or (b"MQIsdp" if version == 3 else b"MQTT")
    head = binary(name) + bytes([version, flags]) + short(keep_alive)
    head += properties(pairs) if version == 5 else b""
    return packet(CONNECT, head + payload)


def publish(
    topic: str | bytes,
    payload: bytes = b"",
    *,
    version: int = 5,
    qos: int = 0,
    retain: bool = False,
    dup: bool = False,
    packet_id: int = 0,
    pairs: Properties = (),
) -> bytes:
    body = topic if isinstance(topic, bytes) else text(topic)
    body += short(packet_id) if qos else b""
    body += properties(pairs) if version == 5 else b""
    flags = dup << 3 | qos << 1 | retain
    return packet(PUBLISH, body + payload, flags=flags)


def ack(kind: int, packet_id: int, reason: int = 0, pairs: Properties = ()) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP, as short as it may be."""
    pairs = list(pairs)
    rest = bytes([reason]) if reason or pairs else b""
    rest += properties(pairs) if pairs else b""
    return packet(kind, short(packet_id) + rest, flags=2 * (kind == PUBREL))


def subscribe(
    packet_id: int,
    topic_filters: Iterable[TopicFilter],
    *,
    version: int = 5,
    pairs: Properties = (),
) -> bytes:
    body = short(packet_id) + (properties(pairs) if version == 5 else b"")
    body += b"".join(text(one.filter) + bytes([one.options]) for one in topic_filters)
    return packet(SUBSCRIBE, body, flags=2)


def unsubscribe(packet_id: int, filters: Iterable[str], *, version: int = 5) -> bytes:
    body = short(packet_id) + (b"\0" if version == 5 else b"")
    return packet(UNSUBSCRIBE, body + b"".join(map(text, filters)), flags=2)


def disconnect(
    reason: int = 0, pairs: Properties = (), *, version: int = 5, flags: int = 0
) -> bytes:
    pairs = list(pairs)
    plain = version != 5 or not (reason or pairs)
    body = b"" if plain else bytes([reason]) + properties(pairs)
    return packet(DISCONNECT, body, flags=flags)


def auth(reason: int, pairs: Properties = (), *, flags: int = 0) -> bytes:
    return packet(AUTH, bytes([reason]) + properties(pairs), flags=flags)


class Body:
    """The bytes of a packet behind its length, read from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        if count > self.left:
            raise BadPacket(f"{count} bytes wanted, {self.left} left")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def varint(self) -> int:
        data = b""
        while not data or data[-1] & 0x80:
            data += self.take(1)
        number = sum((byte & 0x7F) << 7 * at for at, byte in enumerate(data))
        if len(data) > 4 or varint(number) != data:
            raise BadPacket(f"{data.hex()} is not the shortest form of {number}")
        return number

    def binary(self) -> bytes:
        return self.take(self.number(2))

    def text(self) -> str:
        words = self.binary().decode("utf-8", "strict")
        if "\0" in words:
            raise BadPacket(f"U+0000 in {words!r}")
        return words

    def value(self, identifier: int) -> Any:
        readers: list[tuple[tuple[int, ...], Callable[[], Any]]] = [
            (BYTES, lambda: self.number(1)),
            (SHORTS, lambda: self.number(2)),
            (LONGS, lambda: self.number(4)),
            (TEXTS, self.text),
            (BINARIES, self.binary),
            ((USER_PROPERTY,), lambda: (self.text(), self.text())),
            ((SUBSCRIPTION_ID,), self.varint),
        ]
        return next(
            read for identifiers, read in readers if identifier in identifiers
        )()

    def properties(self, kind: int) -> list[tuple[int, Any]]:
        inner = Body(self.take(self.varint()))
        found: list[tuple[int, Any]] = []
        while inner.left:
            identifier = inner.varint()
            if identifier not in FROM_SERVER[kind]:
                raise BadPacket(f"property {identifier} in packet {kind}")
            many = identifier in (USER_PROPERTY, SUBSCRIPTION_ID)
            if not many and any(identifier == key for key, _ in found):
                raise BadPacket(f"property {identifier} twice in packet {kind}")
            found.append((identifier, inner.value(identifier)))
        return found


def read_packet(first: int, data: bytes, version: int) -> Packet:
    """The packet of a server that begins with this byte and has this body."""
    kind, flags = first >> 4, first & 0x0F
    one, body = (
        Packet(kind=kind, size=1 + len(varint(len(data))) + len(data)),
        Body(data),
    )
    if kind not in (CONNACK, PUBLISH, *ACKS, SUBACK, UNSUBACK, PINGRESP, *(14, 15)):
        raise BadPacket(f"packet {kind} is not for a server to send")
    if kind != PUBLISH and flags != 2 * (kind == PUBREL):
        raise BadPacket(f"flags {flags:04b} of packet {kind}")
    if version != 5 and kind in (DISCONNECT, AUTH):
        raise BadPacket(f"packet {kind} in version {version}")
    if kind == PUBLISH:
        _read_publish(one, body, flags, version)
    elif kind == CONNACK:
        _read_connack(one, body, version)
    elif kind in (SUBACK, UNSUBACK):
        _read_answers(one, body, version)
    elif kind != PINGRESP:
        one.packet_id = body.number(2) if kind in ACKS else 0
        one.reason = body.number(1) if version == 5 and body.left else 0
        one.properties = body.properties(kind) if version == 5 and body.left else []
    if body.left:
        raise BadPacket(f"{body.left} bytes too many in packet {kind}")
    _check_codes(one, version)
    return one


def _read_publish(one: Packet, body: Body, flags: int, version: int) -> None:
    one.dup, one.qos, one.retain = bool(flags & 8), flags >> 1 & 3, bool(flags & 1)
    if one.qos == 3 or (one.dup and not one.qos):
        raise BadPacket(f"flags {flags:04b} of a PUBLISH")
    one.topic = body.text()
    one.packet_id = body.number(2) if one.qos else 0
    if one.qos and not one.packet_id:
        raise BadPacket("a PUBLISH with packet identifier 0")
    one.properties = body.properties(PUBLISH) if version == 5 else []
    one.payload = body.take(body.left)


def _read_connack(one: Packet, body: Body, version: int) -> None:
    flags, one.reason = body.number(1), body.number(1)
    if flags > 1:
        raise BadPacket(f"flags {flags:08b} of a CONNACK")
    one.session_present = bool(flags)
    one.properties = body.properties(CONNACK) if version == 5 else []


def _read_answers(one: Packet, body: Body, version: int) -> None:
    one.packet_id = body.number(2)
    one.properties = body.properties(one.kind) if version == 5 else []
    one.reasons = list(body.take(body.left))


def _check_codes(one: Packet, version: int) -> None:
    known = REASONS.get(one.kind, {0})
    if version != 5:
        old = {CONNACK: set(range(6)), SUBACK: {0, 1, 2, 0x80}}
        known = old.get(one.kind, {0})
    unknown = {one.reason, *one.reasons} - known - ({0} if one.reasons else set())
    if unknown:
        raise BadPacket(f"reasons {unknown} of packet {one.kind}")
