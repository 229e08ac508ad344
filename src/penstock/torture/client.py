"""Clients of a broker that outlive their connections, and remember what they were told.

A client is a state machine: what it hears goes in, what it says comes out, and what it
has to remember stays when the connection is gone. It knows neither sockets nor time, so
the same clients talk to a server over sockets and to a broker in memory.
"""

from __future__ import annotations


class LoadClient:
    """One client; ``port`` says which gateway it speaks to."""

    port = "line"

    def __init__(self, name: str) -> None:
        self.name = name
        self.refusals = 0
        """How often it was told that something is not stored."""
        self.facts = 0
        """Promises it was given: confirmations and settlements."""
        self.out = bytearray()
        """What is to be sent."""
        self.drops_out = False
        """Whether it wants its connection to be torn down now."""

    def opened(self) -> None:
        """A new connection."""

    def received(self, data: bytes) -> None:
        raise NotImplementedError

    def work(self) -> None:
        """Say what there is to say."""

    def lost(self) -> None:
        """The connection is gone, and with it what was unanswered."""

    def state(self) -> str:
        """For the message when nothing moves."""
        return f"{self.name}: {self.facts} facts, {len(self.out)} bytes to send"


class LineClient(LoadClient):
    """A client of a protocol of lines."""

    _rest = b""

    def opened(self) -> None:
        self._rest = b""

    def received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        for line in lines:
            if not self.drops_out:  # after that it listens no more
                self.heard(line.decode())

    def heard(self, line: str) -> None:
        raise NotImplementedError

    def say(self, line: str) -> None:
        self.out += line.encode() + b"\n"


class Announcer(LineClient):
    """Publishes one text to topics, as events that all others go before."""

    def __init__(self, text: str, topics: list[str]) -> None:
        super().__init__("announcer")
        self._text = text
        self._topics = topics

    @property
    def done(self) -> bool:
        return self.facts == len(self._topics)

    def opened(self) -> None:
        super().opened()
        self.say("confirm on")
        for topic in self._topics:
            self.say(f'pub {topic} {{"id":"{self._text}","msg":"{self._text}"}}')

    def heard(self, line: str) -> None:
        self.facts += line.startswith("published ")
