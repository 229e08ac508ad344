"""One connection from the client's side, without the connection.

Questions go into ``output``; bytes of the server go into ``receive``, which files the
answers by their ``seq`` and the events by their channel. The blocking and the async
client differ only in how they wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import assert_never

from penstock.client.deliveries import Inbox
from penstock.client.outgoing import Outgoing
from penstock.errors import ServerRefused
from penstock.wire.native import (
    Answer,
    Ask,
    ClientMessage,
    Ended,
    Events,
    FrameSplitter,
    Hello,
    Problem,
    Publish,
    Published,
    Refuse,
    ServerMessage,
    Settle,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    decode_server,
    encode,
)

# A server sends what fits into its pages, and answers of the desk, which are bounded.
MAX_MESSAGE_BYTES = 256 << 20
# What a server says to a connection too many, whatever the protocol.
_TURNED_AWAY = b"error: "
HELLO = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a subscription is wanted.

    subscriber: a name keeps position and unsettled events; without one it is temporary.
    start: ``latest``, ``earliest``, an offset, or ``time:<milliseconds>``; it counts
        when the subscription is made.
    order: ``log`` as published, ``priority`` the highest first.
    window: events on their way that are not settled, at most.
    ack_timeout_s, tries: when an event is sent again, and how often; then it is a
        dead letter.
    auto_ack: events are settled by being sent.
    """

    subscriber: str | None = None
    start: str | int = "latest"
    order: str = "log"
    window: int = 1000
    ack_timeout_s: float | None = None
    tries: int | None = None
    auto_ack: bool = False


class Session:
    def __init__(self) -> None:
        self.inboxes: dict[int, Inbox] = {}
        self.version = ""
        self._splitter = FrameSplitter(MAX_MESSAGE_BYTES)
        self._seqs = count(1)
        self._output: list[bytes] = []
        self._answers: dict[int, ServerMessage] = {}
        self._topics: dict[int, str] = {}
        self._begun = False
        self.farewell: Problem | None = None
        """Why the server ends the connection, if it said so."""

    # What goes out

    def hello(self, name: str, user: str | None, password: str | None) -> int:
        self._put(Hello(user, password, name))
        return HELLO

    def publish(self, topic: str, events: Outgoing) -> int:
        seq = next(self._seqs)
        self._put(
            Publish(
                seq,
                topic,
                events.payloads,
                events.ids,
                events.keys,
                events.priorities,
                events.headers,
                events.parents,
                events.dedup_ids,
            )
        )
        return seq

    def subscribe(self, topic: str, wish: Wish) -> int:
        seq = next(self._seqs)
        self._put(
            Subscribe(
                seq,
                topic,
                wish.subscriber,
                wish.start,
                wish.order,
                wish.window,
                wish.ack_timeout_s,
                wish.tries,
                wish.auto_ack,
            )
        )
        self._topics[seq] = topic
        return seq

    def ask(self, verb: str, arguments: dict[str, object]) -> int:
        seq = next(self._seqs)
        self._put(Ask(seq, verb, arguments))
        return seq

    def settle(self, channel: int, offsets: Sequence[int]) -> None:
        self._put(Settle(channel, list(offsets)))

    def refuse(self, channel: int, offset: int, error: str) -> None:
        self._put(Refuse(channel, offset, error))

    def unsubscribe(self, channel: int) -> int:
        seq = next(self._seqs)
        self._put(Unsubscribe(seq, channel))
        return seq

    def flush_acks(self) -> None:
        """Have acks that were saved up sent."""
        for inbox in self.inboxes.values():
            if inbox.acks:
                self.settle(inbox.channel, inbox.acks)
                inbox.acks = []

    def output(self) -> bytes:
        """What is to be sent now."""
        data = self._output[0] if len(self._output) == 1 else b"".join(self._output)
        self._output.clear()
        return data

    def _put(self, message: ClientMessage) -> None:
        self._output.append(encode(message))

    # What comes in

    def receive(self, data: bytes) -> list[int]:
        """File what came; the seqs that are answered now.

        Raises RemoteProtocolError, or ServerRefused if the server turns us away.
        """
        if not self._begun:
            self._begun = True
            if data.startswith(_TURNED_AWAY):
                text = data.removeprefix(_TURNED_AWAY).decode(errors="replace").strip()
                raise ServerRefused("LimitReached", text)
        answered: list[int] = []
        for body in self._splitter.feed(data):
            self._file(decode_server(body), answered)
        return answered

    def answer(self, seq: int) -> ServerMessage | None:
        """The answer, once; None if there is none yet. Raises ServerRefused."""
        found = self._answers.pop(seq, None)
        if isinstance(found, Problem):
            raise ServerRefused(found.error, found.text, found.hint)
        return found

    def forget(self, seq: int) -> None:
        """Nobody waits for this answer any more."""
        self._answers.pop(seq, None)

    def _file(self, message: ServerMessage, answered: list[int]) -> None:
        match message:
            case Events():
                inbox = self.inboxes.get(message.channel)
                if inbox is not None:  # left while it was on its way
                    inbox.batches.append(message)
            case Published() | Answer():
                self._answers[message.seq] = message
                answered.append(message.seq)
            case Subscribed():
                topic = self._topics.pop(message.seq)
                self.inboxes[message.channel] = Inbox(topic, message.channel)
                self._answers[message.seq] = message
                answered.append(message.seq)
            case Problem(0) if self.version:
                self.farewell = message
            case Problem():
                self._topics.pop(message.seq, None)
                self._answers[message.seq] = message
                answered.append(message.seq)
            case Welcome():
                self.version = message.version
                self._answers[HELLO] = message
                answered.append(HELLO)
            case Ended():
                if message.channel in self.inboxes:
                    self.inboxes[message.channel].ended = message.reason
            case _:
                assert_never(message)
