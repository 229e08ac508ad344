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

    def consumer(self, window: int) -> Consumer:
        return self.subscribe(2 * window, "latest", None)

    def reader(self, number: int, window: int) -> Consumer:
        return self.consumer(window)

    def subscribe(self, window: int, begin: str, name: str | None) -> Subscriber:
        sock = self._connect().sock
        sock.settimeout(SETUP_S)
        topic_filter = Subscribe(SEQ, "t0", subscriber=name, start=begin, window=window)
        sock.sendall(encode(topic_filter))
        came = b""
        while len(came) < 4 or len(came) < 4 + int.from_bytes(came[:4], "little"):
            came += sock.recv(1 << 16)
        end = 4 + int.from_bytes(came[:4], "little")
        answer = decode_server(came[4:end])
        if not isinstance(answer, Subscribed):
            raise Refused(repr(answer))
        # Events may stand behind the answer already.
        return Subscriber(sock, answer.channel, answer.position, came[end:])

    def settle(self, consumer: Consumer) -> None:
        # Whatever the answer is, it comes after all that was settled before.
        consumer.sock.sendall(encode(Ask(FENCE_SEQ, "ping", {})))
        seen = b""
        while FENCE_BYTES not in seen:
            seen = seen[-20:] + consumer.sock.recv(1 << 16)

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


class LineIn(Line):
    """Published by lines, delivered to one of Penstock's own clients."""

    def consumer(self, window: int) -> Consumer:
        return Native(self.place).consumer(window)

    def settle(self, consumer: Consumer) -> None:
        Native(self.place).settle(consumer)
