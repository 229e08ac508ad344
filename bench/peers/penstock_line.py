"""Penstock over its line gateway: what a person types into telnet, many times."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from bench.peers.adapter import (
    END_OF_PAYLOAD,
    Adapter,
    Consumer,
    Dialogue,
    Refused,
    Requests,
    fence,
    payload,
)
from bench.peers.penstock_server import start

__all__ = ["Line", "start"]


class Line(Adapter):
    """Confirmed ``pub``, and ``sub`` with a window and an ``ack`` an event."""

    _count = 0

    def prepare(self, topics: int) -> None:
        self._topics = topics
        self._acks: dict[int, Requests] = {}
        # A topic is there from its first event on.
        dialogue = self._connect(confirming=True)
        firsts = b"".join(self.request(0, n, payload(0, 100)) for n in range(topics))
        dialogue.ask(firsts, b"published ", topics)
        self._count = 0

    def publisher(self) -> socket.socket:
        return self._connect(confirming=True).sock

    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        self._count += 1
        return b'pub t%d {"id":"%d","msg":"%b"}\r\n' % (topic, number, payload)

    def confirmed(self, data: bytes) -> int:
        if b"error" in data:
            at = data.index(b"error")
            raise Refused(data[max(at - 50, 0) : at + 250].decode(errors="replace"))
        return data.count(b"\n")

    def consumer(self, window: int, topic: int = 0) -> Consumer:
        acks = self._acks.get(topic)
        if acks is None:
            numbers = range(topic, self._count, self._topics)
            acks = Requests(b"ack t%d %d\r\n" % (topic, n) for n in numbers)
            self._acks[topic] = acks
        dialogue = self._connect(confirming=False)
        # Twice what is on the way, so that a late ack stops nothing.
        words = b"window %d\r\nsub t%d\r\n" % (2 * window, topic)
        dialogue.ask(words, b"subscribed to topic")
        return Subscriber(dialogue.sock, acks)

    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        if not acknowledged:
            raise Refused("the line gateway wants an ack for every event")
        return self.consumer(window)

    def settle(self, consumers: Sequence[Consumer]) -> None:
        # An unknown command is answered in turn, after all acks.
        fence(consumers, b"fence\r\n", b'["fence"]')

    def _connect(self, *, confirming: bool) -> Dialogue:
        dialogue = Dialogue(self.place.ports["line"])
        dialogue.ask(b"", b"message_broker\r\n")
        if confirming:
            dialogue.ask(b"confirm on\r\n", b"confirm on\r\n")
        return dialogue


class Subscriber(Consumer):
    """Events come in the order of publishing, so do the acks, made beforehand."""

    def __init__(self, sock: socket.socket, acks: Requests) -> None:
        super().__init__(sock)
        self._acks = acks
        self._seen = 0

    def feed(self, data: bytes) -> tuple[int, Sequence[bytes | memoryview]]:
        got = data.count(END_OF_PAYLOAD)
        first = self._seen
        self._seen += got
        return got, self._acks.between(first, self._seen)
