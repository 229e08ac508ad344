"""Penstock over its own clients' protocol, one event a message when publishing.

Answers are counted, not decoded: all publishes carry the same large ``seq``, whose
bytes nothing else on the wire can hold, and offsets of one topic count on.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence

from bench.peers.adapter import (
    SETUP_S,
    Adapter,
    Consumer,
    Dialogue,
    Ends,
    Refused,
    fence,
    payload,
)
from bench.peers.penstock_line import Line
from bench.peers.penstock_server import start
from penstock.wire.native import (
    Ask,
    Hello,
    Publish,
    Settle,
    Subscribe,
    Subscribed,
    decode_server,
    encode,
)

__all__ = ["LineIn", "Native", "start"]

SEQ = 0x7E5E_4D3C_2B1A_0F0E
FENCE_SEQ = 0x7E5E_4D3C_2B1A_0F0F
SEQ_BYTES = b"\xcf" + SEQ.to_bytes(8, "big")
FENCE_BYTES = b"\xcf" + FENCE_SEQ.to_bytes(8, "big")
# The number of the message stands in front of its seq.
PUBLISHED = b"\x41" + SEQ_BYTES
PROBLEM = b"\x45" + SEQ_BYTES


class Native(Adapter):
    """Publish, Subscribe, Settle."""

    def prepare(self, topics: int) -> None:
        self._rest = b""
        # A topic is there from its first event on.
        dialogue = self._connect()
        firsts = b"".join(self.request(0, n, payload(0, 100)) for n in range(topics))
        dialogue.ask(firsts, PUBLISHED, topics)

    def publisher(self) -> socket.socket:
        return self._connect().sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        return encode(Publish(SEQ, f"t{topic}", [payload], [str(number)]))

    def confirmed(self, data: bytes) -> int:
        data = self._rest + data
        if PROBLEM in data:
            raise Refused(repr(data[:300]))
        self._rest = data[1 - len(PUBLISHED) :]
        return data.count(PUBLISHED)

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        return self.subscribe(2 * window, "latest", topic=topic)

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        return self.subscribe(2 * window, "latest", acknowledged=acknowledged)

    def subscribe(
        self, window: int, begin: str, *, topic: int = 0, acknowledged: bool = True
    ) -> Consumer:
        sock = self._connect().sock
        sock.settimeout(SETUP_S)
        wish = Subscribe(
            SEQ,
            f"t{topic}",
            subscriber=None,
            start=begin,
            window=window,
            auto_ack=not acknowledged,
        )
        sock.sendall(encode(wish))
        came = b""
        while len(came) < 4 or len(came) < 4 + int.from_bytes(came[:4], "little"):
            came += sock.recv(1 << 16)
        end = 4 + int.from_bytes(came[:4], "little")
        answer = decode_server(came[4:end])
        if not isinstance(answer, Subscribed):
            raise Refused(repr(answer))
        # Events may stand behind the answer already.
        if not acknowledged:
            return Reading(sock, came[end:])
        return Subscriber(sock, answer.channel, answer.position, came[end:])

    def settle(self, consumers: Sequence[Consumer]) -> None:
        # Whatever the answer is, it comes after all that was settled before.
        fence(consumers, encode(Ask(FENCE_SEQ, "ping", {})), FENCE_BYTES)

    def _connect(self) -> Dialogue:
        dialogue = Dialogue(self.place.ports["native"])
        # Welcome: an array of its number, the version and a limit.
        dialogue.ask(encode(Hello(None, None, "bench")), b"\x93\x40")
        return dialogue


class Subscriber(Consumer):
    def __init__(
        self, sock: socket.socket, channel: int, position: int, early: bytes
    ) -> None:
        super().__init__(sock)
        self._early = early
        self._channel = channel
        self._next = position
        self._ends = Ends()

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        if self._early:
            data, self._early = self._early + data, b""
        got = self._ends.count(data)
        if not got:
            return 0, ()
        first = self._next
        self._next += got
        return got, (encode(Settle(self._channel, list(range(first, self._next)))),)


class Reading(Consumer):
    """Events are settled by being sent."""

    def __init__(self, sock: socket.socket, early: bytes) -> None:
        super().__init__(sock)
        self._early = early
        self._ends = Ends()

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes]]:
        if self._early:
            data, self._early = self._early + data, b""
        return self._ends.count(data), ()


class LineIn(Line):
    """Published by lines, delivered to Penstock's own clients."""

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        return Native(self.place).consumer(window, topic)

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        return Native(self.place).reader(number, window, acknowledged=acknowledged)

    def settle(self, consumers: Sequence[Consumer]) -> None:
        Native(self.place).settle(consumers)
