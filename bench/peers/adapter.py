"""What the loader must know of a system: its bytes, and nothing about time.

An adapter connects, makes topics, says which bytes publish event i, and counts the
confirmations in whatever bytes came back. A consumer counts deliveries and answers
with acknowledgements. Neither looks at single events where the protocol allows that:
every payload ends with a byte that is found nowhere else in the text protocols, so
counting that byte counts deliveries, however the stream is cut. In binary protocols
lengths and numbers hold any byte; there the end of the payload is a longer mark.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

END_OF_PAYLOAD = b"~"
# No number on the wire is large enough to hold these bytes.
LONG_END_OF_PAYLOAD = b".....~"
SETUP_S = 30.0


class Refused(Exception):
    """The server answered with an error, or not at all."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a server listens, and the processes whose CPU time is its cost."""

    ports: dict[str, int]
    pids: list[int]
    # What the variant of the contender says, for example the kind of queue.
    variant: str = ""
    # Sets topics of different cases apart on a server that lives longer than one.
    prefix: str = ""
    facts: dict[str, str] = field(default_factory=dict)


class Requests:
    """The bytes of many requests in one block; after the last comes the first."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        whole = list(parts)
        self.count = len(whole)
        self._view = memoryview(b"".join(whole))
        self._ends = [0, *accumulate(map(len, whole))]

    def between(self, first: int, last: int) -> list[memoryview]:
        """Requests first … last - 1, as one piece or more."""
        pieces = []
        while first < last:
            begin = first % self.count
            end = min(self.count, begin + last - first)
            pieces.append(self._view[self._ends[begin] : self._ends[end]])
            first += end - begin
        return pieces


class Dialogue:
    """A blocking connection for set-up: ask, and wait for a word of the answer."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=SETUP_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, data: bytes, until: bytes, times: int = 1) -> bytes:
        """Send; all that came when ``until`` has come so many times."""
        if data:
            self.sock.sendall(data)
        answer = b""
        while answer.count(until) < times:
            try:
                more = self.sock.recv(1 << 16)
            except TimeoutError:
                self.sock.close()
                raise Refused(f"no {until!r} in {answer[-300:]!r}") from None
            if not more:
                self.sock.close()
                raise Refused(f"closed after {answer[-300:]!r}")
            answer += more
        return answer


class Ends:
    """Counts the ends of payloads in a binary stream that is cut anywhere."""

    def __init__(self) -> None:
        self._rest = b""

    def count(self, data: bytes) -> int:
        data = self._rest + data
        self._rest = data[1 - len(LONG_END_OF_PAYLOAD) :]
        return data.count(LONG_END_OF_PAYLOAD)


class Consumer(ABC):
    """One subscriber on a connection of its own."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def begin(self) -> bytes:
        """What to send first; once, not per run."""
        return b""

    @abstractmethod
    def feed(self, data: bytes) -> tuple[int, Sequence[bytes | memoryview]]:
        """How many events were delivered, and what to send back for them."""


def fence(consumers: Sequence[Consumer], words: bytes, until: bytes) -> None:
    """Ask all of them something, and wait until all of them were answered."""
    for consumer in consumers:
        consumer.sock.sendall(words)
    for consumer in consumers:
        seen = b""
        while until not in seen:
            if not (more := consumer.sock.recv(1 << 16)):
                raise Refused("closed instead of answering")
            seen = seen[-len(until) :] + more


class Adapter(ABC):
    """One system as its raw-socket client sees it."""

    # Requests go out in so many at once: those that are not the last are empty.
    batch = 1

    def __init__(self, place: Place) -> None:
        self.place = place

    @abstractmethod
    def prepare(self, topics: int) -> None:
        """Make so many topics."""

    @abstractmethod
    def publisher(self) -> socket.socket:
        """A connection that confirms every publish."""

    @abstractmethod
    def request(self, number: int, topic: int, payload: bytes) -> bytes:
        """Publish one event to one topic, to be confirmed by itself."""

    @abstractmethod
    def confirmed(self, data: bytes) -> int:
        """How many events these bytes of the publisher's connection confirm."""

    @abstractmethod
    def consumer(self, window: int, topic: int = 0) -> Consumer:
        """The one subscriber of a topic, who acknowledges every event."""

    @abstractmethod
    def reader(self, number: int, window: int, *, acknowledged: bool) -> Consumer:
        """One of many subscribers of topic 0, who all get every event."""

    def settle(self, consumers: Sequence[Consumer]) -> None:  # noqa: B027
        """Return when the server has seen all acknowledgements sent so far."""

    def reset(self) -> None:  # noqa: B027
        """Throw away what is stored, where that is possible, between two runs."""

    def close(self) -> None:  # noqa: B027
        """Remove what would slow down later cases on the same server."""


def payload(number: int, size: int) -> bytes:
    """Text that differs from event to event and is safe inside a JSON string."""
    return (b"%012d" % number).ljust(size - 1, b".") + END_OF_PAYLOAD
