"""Bytes to packets: complete ones, in runs where neighbours are alike.

    offset  size  field
    0       1     kind and flags
    1       1-4   length of the rest, variable byte integer
    …       n     the rest

A parser keeps at most one packet that has not come to its end, and its length is
checked as soon as it is known; a CONNECT or DISCONNECT that goes wrong is not waited
for to its end. The first error is the last word of a parser: packets in
front of it are returned, ``failed`` is set, and the next call raises it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, Generic, TypeVar, cast

from penstock.wire.mqtt import bodies
from penstock.wire.mqtt.bodies import KEPT_BYTES, read_topic, topic_of
from penstock.wire.mqtt.connection import (
    TABLE,
    ConnectionState,
    Side,
    first_bytes,
    refusal,
)
from penstock.wire.mqtt.kinds import DUP, RETAIN, PacketKind
from penstock.wire.mqtt.packets import (
    Acks,
    ClientPacket,
    Packet,
    Pingreq,
    Pingresp,
    Publishes,
    ServerPacket,
)
from penstock.wire.mqtt.primitives import PacketBody, PartialBody, Unfinished
from penstock.wire.mqtt.reasons import Malformed, Reason
from penstock.wire.mqtt.runs import alike, publish_run, two_bytes

_PUBLISH: Final = PacketKind.PUBLISH
_ACKS: Final = frozenset(
    {PacketKind.PUBACK, PacketKind.PUBREC, PacketKind.PUBREL, PacketKind.PUBCOMP}
)
# These are looked at whenever more of them has come, as long as that is cheap.
_EXAMINED: Final = frozenset({PacketKind.CONNECT, PacketKind.DISCONNECT})
_EXAMINED_BYTES: Final = 4096

AnyPacket = TypeVar("AnyPacket", bound=Packet)


class _PacketParser(ABC, Generic[AnyPacket]):
    """``feed`` bytes as they come, get the packets that they completed."""

    __slots__ = (
        "_held",
        "_kinds",
        "_max_bytes",
        "_max_first_bytes",
        "_max_packet_bytes",
        "_needed",
        "_side",
        "_state",
        "failed",
        "version",
    )

    def __init__(
        self,
        max_packet_bytes: int,
        side: Side,
        version: int,
        max_first_bytes: int | None = None,
    ) -> None:
        self.version = version
        self.failed: Malformed | None = None
        self._max_packet_bytes = max_packet_bytes
        self._max_first_bytes = min(
            max_first_bytes or max_packet_bytes, max_packet_bytes
        )
        self._side = side
        self._held = bytearray()
        self._needed = 0
        self._enter(ConnectionState.NEW)

    def feed(self, data: bytes) -> list[AnyPacket]:
        """The packets that ended in ``data``; raises ``failed`` if that was set before.

        So look at ``failed`` behind each call: the packets came before the error.
        """
        if self.failed is not None:
            raise self.failed
        if self._held:
            if len(self._held) + len(data) < self._needed:
                self._held += data
                return []
            data = b"".join((self._held, data))
            self._held = bytearray()
        packets: list[Packet] = []
        at, size = 0, len(data)
        try:
            while at < size:
                start = at
                at = self._take(data, at, packets)
                if at == start:
                    self._held += memoryview(data)[at:]
                    break
        except Malformed as error:
            self.failed = self._explained(error, data, at)
        # The table of its side lets in nothing else.
        return cast("list[AnyPacket]", packets)

    @property
    def held_bytes(self) -> int:
        """How much of a packet not ended yet has come."""
        return len(self._held)

    def _enter(self, state: ConnectionState) -> None:
        self._state = state
        self._kinds = first_bytes(self._side, state, self.version)
        new = state is ConnectionState.NEW
        self._max_bytes = self._max_first_bytes if new else self._max_packet_bytes

    def _take(self, data: bytes, at: int, packets: list[Packet]) -> int:
        """Append what stands at ``at``, with neighbours; where it ends, or ``at``."""
        first = data[at]
        kind = self._kinds[first]
        if kind is None:
            raise refusal(first, self._side, self._state, self.version)
        start, end = self._frame(data, at)
        if end > len(data) or not end:
            self._needed = end - at
            if kind in _EXAMINED and end and len(data) - at < _EXAMINED_BYTES:
                self._needed = 0
                self._examine(data, start, end, kind)
            return at
        if kind is _PUBLISH:
            return self._publishes(data, at, start, end, packets)
        if kind in _ACKS:
            return self._acks(data, at, start, end, kind, packets)
        packets.append(self._single(PacketBody(data, start, end, kind.name), kind))
        state = TABLE[self._side][self._state][kind]
        if state is not self._state:
            self._enter(state)
        return end

    def _examine(self, data: bytes, start: int, end: int, kind: PacketKind) -> None:
        """Raise Malformed if what came of a packet is wrong, whatever may follow."""
        version = self.version
        try:
            self._single(PartialBody(data, start, end, kind.name), kind)
        except Unfinished:
            self.version = version

    def _frame(self, data: bytes, at: int) -> tuple[int, int]:
        """Where the rest of a packet begins and ends; (0, 0) if that is not known."""
        start = at + 2
        if len(data) > start and data[at + 1] < 0x80:
            end = start + data[at + 1]
        else:
            start, end = self._long_frame(data, at)
        if end - at > self._max_bytes:
            text = f"packet of {end - at} bytes exceeds {self._max_bytes}"
            raise Malformed(Reason.PACKET_TOO_LARGE, text)
        return start, end

    def _long_frame(self, data: bytes, at: int) -> tuple[int, int]:
        length, shift, start = 0, 0, at + 1
        for byte in data[start : at + 5]:
            start += 1
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        else:
            if shift == 28:
                text = "length of a packet has more than 4 bytes"
                raise Malformed(Reason.MALFORMED_PACKET, text)
            return 0, 0
        # MQTT-1.5.5-1, which older versions do not say.
        if not byte and shift and self.version == 5:
            text = "length of a packet has more bytes than it needs"
            raise Malformed(Reason.MALFORMED_PACKET, text)
        return start, start + length

    def _publishes(
        self, data: bytes, at: int, start: int, end: int, packets: list[Packet]
    ) -> int:
        """Append a PUBLISH and all behind it that have its flags and topic."""
        first = data[at]
        field_end = start + 2
        if field_end <= end:
            field_end += data[start] << 8 | data[start + 1]
        payloads: list[bytes] = []
        if field_end <= end:
            field = data[start:field_end]
            topic = topic_of(field) if len(field) <= KEPT_BYTES else read_topic(field)
            payloads, ids, behind = publish_run(
                data, at, start, end, field, self._max_bytes, self.version
            )
        if not payloads or not topic:
            # It has properties, or no topic, or something wrong.
            body = PacketBody(data, start, end, "PUBLISH")
            packets.append(bodies.publish(body, first, self.version, self._side))
            return end
        packets.append(
            Publishes(
                topic=topic,
                qos=first >> 1 & 3,
                retain=first & RETAIN != 0,
                dup=first & DUP != 0,
                payloads=payloads,
                packet_ids=ids or None,
            )
        )
        return behind

    def _acks(
        self,
        data: bytes,
        at: int,
        start: int,
        end: int,
        kind: PacketKind,
        packets: list[Packet],
    ) -> int:
        """Append an acknowledgement and all plain ones of its kind behind it."""
        first = data[at]
        ids: list[int] = []
        alone = end == len(data) or data[end] != first
        if alone and end - start == 2 and any(data[start:end]):
            # The way of those who wait for each, without a look around.
            packet_id = data[start] << 8 | data[start + 1]
            packets.append(Acks(kind=kind, packet_ids=[packet_id]))
            return end
        while end and self._is_plain(data, start, end):
            stride = end - at
            zeros = range(start + 2 - at, stride)
            count = 1
            if data.startswith(data[at:start], end):
                count += alike(data, end, stride, data[at:start], zeros)
            more = two_bytes(data, start, stride, count)
            if 0 in more:
                del more[more.index(0) :]
            ids += more
            at += len(more) * stride
            if len(more) < count or at >= len(data) or data[at] != first:
                break
            start, end = self._next(data, at)
        if not ids:
            body = PacketBody(data, start, end, kind.name)
            packets.append(bodies.ack(body, kind, self.version))
            return end
        packets.append(Acks(kind=kind, packet_ids=ids))
        return at

    def _is_plain(self, data: bytes, start: int, end: int) -> bool:
        """Whether an acknowledgement is its packet identifier, and success."""
        length = end - start
        return length == 2 or (
            self.version == 5 and 2 < length <= 4 and not any(data[start + 2 : end])
        )

    def _next(self, data: bytes, at: int) -> tuple[int, int]:
        """As ``_frame``, and (0, 0) if it is not complete, or wrong."""
        try:
            start, end = self._frame(data, at)
        except Malformed:
            return 0, 0
        return (start, end) if end <= len(data) else (0, 0)

    def _explained(self, error: Malformed, data: bytes, at: int) -> Malformed:
        """What is wrong with the packet that stands at ``at``."""
        return error

    @abstractmethod
    def _single(self, body: PacketBody, kind: PacketKind) -> Packet:
        """A packet of a kind that does not come in runs."""


class ClientPacketParser(_PacketParser[ClientPacket]):
    """What clients send. ``version`` is 0 before CONNECT.

    If a CONNECT has a protocol level that does not exist, ``version`` is that of the
    answer, 4 or 5; if it is not even MQTT, ``version`` stays 0: close without one.
    CONNECT may have a limit of its own, as any peer can send one. ``max_filters`` is of
    one SUBSCRIBE or UNSUBSCRIBE.
    """

    __slots__ = ("_max_filters",)

    def __init__(
        self,
        max_packet_bytes: int,
        max_connect_bytes: int | None = None,
        max_filters: int | None = None,
    ) -> None:
        super().__init__(max_packet_bytes, Side.CLIENT, 0, max_connect_bytes)
        self._max_filters = max_filters

    def _single(self, body: PacketBody, kind: PacketKind) -> ClientPacket:
        match kind:
            case PacketKind.CONNECT:
                self._agree(body)
                return bodies.connect(body, self.version)
            case PacketKind.SUBSCRIBE:
                return bodies.subscribe(body, self.version, self._max_filters)
            case PacketKind.UNSUBSCRIBE:
                return bodies.unsubscribe(body, self.version, self._max_filters)
            case PacketKind.PINGREQ:
                body.finish()
                return Pingreq()
            case PacketKind.DISCONNECT:
                return bodies.disconnect(body, self.version, Side.CLIENT)
        return bodies.auth(body, self.version, Side.CLIENT)

    def _explained(self, error: Malformed, data: bytes, at: int) -> Malformed:
        """A CONNECT that is too large is answered, as far as it has come."""
        if (
            self._state is not ConnectionState.NEW
            or error.reason != Reason.PACKET_TOO_LARGE
        ):
            return error
        start, _ = self._long_frame(data, at)
        body = PacketBody(data, start, len(data), PacketKind.CONNECT.name)
        try:
            self._agree(body)
            length = bodies.client_id_bytes(body, self.version)
        except Malformed:
            return error
        if length <= self._max_first_bytes:
            return error
        text = f"client id of {length} bytes exceeds {self._max_first_bytes}"
        return Malformed(Reason.CLIENT_IDENTIFIER_NOT_VALID, text)

    def _agree(self, body: PacketBody) -> None:
        """Take the version of a CONNECT, or raise Malformed."""
        name = body.binary()
        if name not in bodies.PROTOCOL_NAMES.values():
            text = f"CONNECT has protocol {name[:20]!a}"  # MQTT-3.1.2-1
            raise Malformed(Reason.UNSUPPORTED_PROTOCOL_VERSION, text)
        level = body.byte()
        # Bit 7 is what bridges of version 4 and before try first.
        self.version = 5 if 5 <= level < 0x80 else 4
        if bodies.PROTOCOL_NAMES.get(level) != name:
            text = f"CONNECT has level {level} of {name.decode()}"  # MQTT-3.1.2-2
            raise Malformed(Reason.UNSUPPORTED_PROTOCOL_VERSION, text)
        self.version = level


class ClientParser(_PacketParser[ServerPacket]):
    """What servers send to a client of ``version``."""

    __slots__ = ()

    def __init__(self, max_packet_bytes: int, version: int) -> None:
        super().__init__(max_packet_bytes, Side.SERVER, version)

    def _single(self, body: PacketBody, kind: PacketKind) -> ServerPacket:
        match kind:
            case PacketKind.CONNACK:
                return bodies.connack(body, self.version)
            case PacketKind.SUBACK:
                return bodies.suback(body, self.version)
            case PacketKind.UNSUBACK:
                return bodies.unsuback(body, self.version)
            case PacketKind.PINGRESP:
                body.finish()
                return Pingresp()
            case PacketKind.DISCONNECT:
                return bodies.disconnect(body, self.version, Side.SERVER)
        return bodies.auth(body, self.version, Side.SERVER)
