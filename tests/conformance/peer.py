"""One MQTT client on a blocking socket: it sends any bytes and reads packets strictly.

    peer = Peer(port, version=5)
    peer.connect("me")
    peer.subscribe("a/#", qos=1)
    message = peer.receive()

Every wait ends after ``WAIT_S``. Packets come in order: ``read`` gives the next one,
and ``take`` the next of a kind, keeping what came in between.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from tests.conformance import packets
from tests.conformance.packets import (
    CONNACK,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
    Packet,
    Properties,
    TopicFilter,
)
from tests.conformance.reference import REFERENCE

WAIT_S = 3.0 if REFERENCE else 10.0
NO_MORE = (ConnectionResetError, BrokenPipeError, ConnectionAbortedError)


class Closed(AssertionError):
    """The server ended the connection while a packet was waited for."""


class Peer:
    def __init__(self, port: int, *, version: int = 5) -> None:
        self.version = version
        self.client_id = ""
        self.connack = Packet(kind=CONNACK)
        self.seen: list[Packet] = []
        self.port = port
        self.retained: set[str] = set()
        """Topics it may have left a retained message in."""
        self.inbox: list[Packet] = []
        """What was read and nobody asked for yet."""
        self._bytes = b""
        self._at = 0
        self._last_id = 0
        self.socket = self._dial(port)

    def _dial(self, port: int) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", port), WAIT_S)
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def drop(self) -> None:
        """End the connection without a word."""
        self.socket.close()

    def read(self, wait_s: float = WAIT_S) -> Packet:
        """The next packet, of whatever kind."""
        return self.inbox.pop(0) if self.inbox else self._receive(wait_s)

    def take(self, kind: int, wait_s: float = WAIT_S) -> Packet:
        """The next packet of a kind; others that come before it wait in the inbox."""
        for at, one in enumerate(self.inbox):
            if one.kind == kind:
                return self.inbox.pop(at)
        deadline_s = time.monotonic() + wait_s
        while True:
            one = self._receive(deadline_s - time.monotonic())
            if one.kind == kind:
                return one
            self.inbox.append(one)

    def rest(self) -> bytes:
        """Every byte that still comes until the server ends the connection."""
        data = self._bytes[self._at :]
        deadline_s = time.monotonic() + WAIT_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            try:
                data += self._bytes_from_socket(left_s)
            except Closed:
                return data
        raise AssertionError(f"not closed within {WAIT_S} s")

    def closed(self, wait_s: float = WAIT_S) -> list[Packet]:
        """Wait until the server has ended the connection; what it said before that."""
        deadline_s = time.monotonic() + wait_s
        while True:
            try:
                self.inbox.append(self._receive(deadline_s - time.monotonic()))
            except Closed:
                return self.inbox

    def is_open(self) -> bool:
        """Whether the server still answers."""
        try:
            self.ping()
        except (Closed, *NO_MORE):
            return False
        return True

    def ping(self) -> None:
        self.send(packets.packet(PINGREQ, b""))
        self.take(PINGRESP)

    def connect(self, client_id: str = "", **options: Any) -> Packet:
        """Send a CONNECT; the CONNACK, which has to be the first packet."""
        options.setdefault("version", self.version)
        if (will := options.get("will")) and will.retain:
            self.retained.add(will.topic)
        self.send(packets.connect(client_id, **options))
        answer = self.read()
        assert answer.kind == CONNACK, answer
        self.client_id = answer.get(packets.ASSIGNED_CLIENT_ID, client_id)
        return answer

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def subscribe(
        self, *topic_filters: str | TopicFilter, qos: int = 0, **options: Any
    ) -> Packet:
        """Subscribe to filters; the SUBACK."""
        made = [
            TopicFilter(filter=one, qos=qos) if isinstance(one, str) else one
            for one in topic_filters
        ]
        packet_id = self.next_id()
        options.setdefault("version", self.version)
        self.send(packets.subscribe(packet_id, made, **options))
        answer = self.take(SUBACK)
        assert answer.packet_id == packet_id
        assert len(answer.reasons) == len(made)
        return answer

    def unsubscribe(self, *filters: str) -> Packet:
        packet_id = self.next_id()
        self.send(packets.unsubscribe(packet_id, filters, version=self.version))
        answer = self.take(UNSUBACK)
        assert answer.packet_id == packet_id
        return answer

    def publish(
        self, topic: str, payload: bytes = b"", *, qos: int = 0, **options: Any
    ) -> Packet | None:
        """Publish with the whole handshake; the PUBACK or PUBREC, if there is one."""
        self.retained |= {topic} if options.get("retain") else set()
        packet_id = options.pop("packet_id", None) or (self.next_id() if qos else 0)
        options.update(qos=qos, packet_id=packet_id, version=self.version)
        self.send(packets.publish(topic, payload, **options))
        if not qos:
            return None
        answer = self.take(PUBACK if qos == 1 else PUBREC)
        assert answer.packet_id == packet_id
        if qos == 2 and answer.reason < 0x80:
            self.ack(PUBREL, packet_id)
            assert self.take(PUBCOMP).packet_id == packet_id
        return answer

    def ack(
        self, kind: int, packet_id: int, reason: int = 0, pairs: Properties = ()
    ) -> None:
        self.send(packets.ack(kind, packet_id, reason, pairs))

    def receive(self, wait_s: float = WAIT_S) -> Packet:
        """The next PUBLISH, acknowledged as its QoS wants it."""
        one = self.take(PUBLISH, wait_s)
        if one.qos == 1:
            self.ack(PUBACK, one.packet_id)
        elif one.qos == 2:
            self.ack(PUBREC, one.packet_id)
            assert self.take(PUBREL).packet_id == one.packet_id
            self.ack(PUBCOMP, one.packet_id)
        return one

    def until(self, payload: bytes) -> list[Packet]:
        """Every message up to the one with this payload, that one left out."""
        found: list[Packet] = []
        while (one := self.receive()).payload != payload:
            found.append(one)
        return found

    def disconnect(self, reason: int = 0, pairs: Properties = ()) -> None:
        """Say goodbye and wait until the server has closed."""
        self.send(packets.disconnect(reason, pairs, version=self.version))
        self.closed()
        self.socket.close()

    def _receive(self, wait_s: float) -> Packet:
        deadline_s = time.monotonic() + wait_s
        while (found := self._split()) is None:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise AssertionError(f"no packet within {wait_s:.1f} s")
            self._bytes += self._bytes_from_socket(left_s)
        return found

    def _bytes_from_socket(self, wait_s: float) -> bytes:
        self.socket.settimeout(wait_s)
        try:
            data = self.socket.recv(65536)
        except TimeoutError:
            return b""
        except NO_MORE:
            data = b""
        finally:
            self.socket.settimeout(WAIT_S)
        if not data:
            left = len(self._bytes) - self._at
            raise Closed(f"closed with {left} bytes left, after {self.inbox[-1:]}")
        return data

    def _split(self) -> Packet | None:
        """The first packet of what was read, if all of it is there."""
        at = self._at
        head = self._bytes[at : at + 6]
        end = next((i for i in range(1, len(head)) if head[i] < 0x80), 5)
        if end > 4:
            assert len(head) < 6, f"no length in {head.hex()}"
            return None
        whole = end + 1 + packets.Body(head[1 : end + 1]).varint()
        if len(self._bytes) - at < whole:
            return None
        self._at = at + whole
        data = self._bytes[at + end + 1 : self._at]
        if self._at == len(self._bytes):
            self._bytes, self._at = b"", 0
        return packets.read_packet(head[0], data, self.version)


Join = Callable[..., Peer]
