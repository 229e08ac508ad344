"""Chapter 6: MQTT in WebSocket frames."""

from __future__ import annotations

import base64
import os
import socket
import struct
from collections.abc import Callable, Iterator

import pytest

from tests.conformance import packets
from tests.conformance.packets import TopicFilter
from tests.conformance.peer import Closed, Peer
from tests.conformance.server import Endpoints
from tests.conformance.statements import statement, statement311

TEXT, BINARY, CLOSE = 1, 2, 8


class WebSocketPeer(Peer):
    """A client whose bytes travel in binary frames, one for each ``send``."""

    def __init__(self, server: Endpoints, *, version: int, offer: str = "mqtt") -> None:
        self._server, self._offer = server, offer
        self._frames = b""
        self.answer = ""
        super().__init__(server.websocket, version=version)

    def _dial(self, port: int) -> socket.socket:
        link = super()._dial(port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {self._server.path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += ["Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"Sec-WebSocket-Protocol: {self._offer}"] if self._offer else []
        link.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._frames:
            data = link.recv(4096)
            if not data:
                break
            self._frames += data
        head, _, self._frames = self._frames.partition(b"\r\n\r\n")
        self.answer = head.decode().lower()
        return link

    def send(self, data: bytes) -> None:
        self.send_frame(BINARY, data)

    def send_frame(self, kind: int, data: bytes) -> None:
        size = len(data)
        head = bytes([0x80 | kind])
        head += bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0xFE, size)
        mask = b"\1\2\3\4"
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def _bytes_from_socket(self, wait_s: float) -> bytes:
        while (frame := self._frame()) is None:
            data = super()._bytes_from_socket(wait_s)
            if not data:
                return b""
            self._frames += data
        kind, data = frame
        if kind == CLOSE:
            raise Closed("closed by a frame")
        assert kind == BINARY, f"a frame of type {kind}"
        return data

    def _frame(self) -> tuple[int, bytes] | None:
        if len(self._frames) < 2:
            return None
        assert self._frames[1] < 0x80, "a server does not mask"
        size, at = self._frames[1], 2
        if size >= 126:
            at = 4 if size == 126 else 10
            size = int.from_bytes(self._frames[2:at], "big")
        if len(self._frames) < at + size:
            return None
        kind, data = self._frames[0] & 15, self._frames[at : at + size]
        self._frames = self._frames[at + size :]
        return kind, data


Dial = Callable[..., WebSocketPeer]


@pytest.fixture
def dial_web(server: Endpoints) -> Iterator[Dial]:
    peers: list[WebSocketPeer] = []

    def dialled(version: int = 5, *, offer: str = "mqtt") -> WebSocketPeer:
        peers.append(WebSocketPeer(server, version=version, offer=offer))
        return peers[-1]

    yield dialled
    for peer in peers:
        peer.drop()


@statement("MQTT-6.0.0-1", "MQTT-6.0.0-4")
@statement311("MQTT-6.0.0-1", "MQTT-6.0.0-4")
def test_packets_travel_in_binary_frames(
    dial_web: Dial, version: int, topic: str
) -> None:
    peer = dial_web(version)

    assert " 101 " in peer.answer.splitlines()[0]
    assert "sec-websocket-protocol: mqtt" in peer.answer
    assert peer.connect("").reason == 0
    peer.subscribe(topic, qos=2)
    peer.publish(topic, b"x" * 1000, qos=2)
    assert peer.receive().payload == b"x" * 1000


@statement("MQTT-6.0.0-1")
@statement311("MQTT-6.0.0-1")
def test_a_text_frame_ends_the_connection(dial_web: Dial, version: int) -> None:
    peer = dial_web(version)
    peer.connect("")

    peer.send_frame(TEXT, packets.packet(packets.PINGREQ, b""))

    assert [one.kind for one in peer.closed()] in ([], [packets.DISCONNECT])


@pytest.mark.parametrize("size", [1, 7, 1000])
@statement("MQTT-6.0.0-2")
@statement311("MQTT-6.0.0-2")
def test_frames_and_packets_need_not_begin_together(
    dial_web: Dial, version: int, topic: str, size: int
) -> None:
    peer = dial_web(version)
    data = packets.connect("", version=version)
    data += packets.subscribe(1, [TopicFilter(filter=topic)], version=version)
    data += packets.publish(topic, b"payload", version=version)

    for at in range(0, len(data), size):
        peer.send(data[at : at + size])

    assert peer.take(packets.PUBLISH).payload == b"payload"


@statement("MQTT-6.0.0-3", "MQTT-6.0.0-4")
@statement311("MQTT-6.0.0-3", "MQTT-6.0.0-4")
def test_of_several_subprotocols_mqtt_is_chosen(dial_web: Dial) -> None:
    peer = dial_web(offer="chat, mqtt, soap")

    assert "sec-websocket-protocol: mqtt\r" in peer.answer + "\r"
    assert peer.connect("").reason == 0
