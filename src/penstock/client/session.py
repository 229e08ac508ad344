"""One connection from the client's side, without the connection.

Questions go into ``output``; bytes of the server go into ``receive``, which files the
answers by their ``seq`` and the events by their channel. The blocking and the async
client differ only in how they wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Unpack, assert_never

from penstock.client.deliveries import Inbox
from penstock.client.outgoing import Outgoing
from penstock.client.tls import ALERT, speaks_tls
from penstock.errors import LimitReached, RemoteProtocolError, ServerRefused
from penstock.model.policy import RetrySettings
from penstock.model.remote_errors import remote_error
from penstock.wire.native import (
    Answer,
    Ask,
    ChannelMoved,
    ClientMessage,
    Ended,
    Events,
    Fetch,
    Fetched,
    Finish,
    FrameSplitter,
    Hello,
    Prefetch,
    Publish,
    Published,
    Refuse,
    RequestRefused,
    ServerMessage,
    Settle,
    Stage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    decode_server,
    encode,
)

# A server sends what fits into its pages, answers of the desk, which are bounded, and
# frames, the largest of which has 256 MiB.
MAX_MESSAGE_BYTES = (256 << 20) + (1 << 16)
# What a server says to a connection too many, whatever the protocol.
_TURNED_AWAY = b"error: "
HELLO = 0


class SubscribeOptions(RetrySettings, total=False):
    """How a subscription is wanted; the defaults are those of the message Subscribe.

    start: ``latest``, the default, ``earliest``, an offset, or ``time:<milliseconds>``;
        it counts when the subscription is made.
    order: ``log``, the default, as published, ``priority`` the highest first, ``key``
        as published, the events of one key to one consumer at a time.
    window: events on their way that are not settled, at most; 1000 by default.
    ack_timeout_s, tries: when an event is sent again, and how often; then it is a
        dead letter. None, the default, is never, and without a limit.
    in_order: events do not overtake one that has to be sent alone, because it was lost
        before; and there is one consumer at a time, unless the order is ``key``: then a
        consumer may get several events of a key, and keeps them in order.
    prefetch: events that this consumer may have of the window, at most; 0, the
        default, is a fair share of it.
    auto_ack: events are settled by being sent.
    backoff_s, backoff_factor, max_backoff_s, jitter: the pause before an event that
        failed is sent again (0), its growth (2), its end (300), and the part of it
        (from 0, the default, to 1) by which events are spread.
    """

    start: str | int
    order: str
    window: int
    ack_timeout_s: float | None
    tries: int | None
    auto_ack: bool
    in_order: bool
    prefetch: int


class NativeSession:
    """``where`` is what errors call the server."""

    def __init__(self, where: str = "the server") -> None:
        self._where = where
        self.inboxes: dict[int, Inbox] = {}
        self.version = ""
        self._splitter = FrameSplitter(MAX_MESSAGE_BYTES)
        self._seqs = count(1)
        self._output: list[bytes | Callable[[], bytes]] = []
        self.said = 0
        """Goes up with all that is put or leaves: nothing joins what is in front."""
        self._tells_limit = False
        """Whether the server says what it takes, as those do that know Prefetch."""
        self.max_frame_bytes = MAX_MESSAGE_BYTES
        """A server may close the connection for more, if it says so."""
        self._answers: dict[int, ServerMessage] = {}
        self._topics: dict[int, str] = {}
        self._given_up: set[int] = set()
        self._successors: dict[int, int] = {}
        """Channels that others took the place of."""
        self._begun = False
        self.farewell: RequestRefused | None = None
        """Why the server ends the connection, if it said so."""

    # What goes out

    def hello(
        self,
        name: str,
        user: str | None,
        password: str | None,
        token: str | None = None,
    ) -> int:
        self._put(Hello(user, password, name, token))
        return HELLO

    def publish(self, topic: str, events: Outgoing) -> int:
        seq = next(self._seqs)
        self._put(_publish(topic, events, seq))
        return seq

    def put_later(self, make: Callable[[], bytes]) -> None:
        """Have something sent in its place that is made when it leaves."""
        self._output.append(make)

    def publish_message(
        self, topic: str, events: Outgoing, units: list[int] | None
    ) -> tuple[int, bytes]:
        """A Publish that leaves now, and its seq; ``units`` as in that message."""
        seq = next(self._seqs)
        return seq, encode(_publish(topic, events, seq, units))

    def finish(
        self, channel: int, offsets: list[int], events: Mapping[str, Outgoing]
    ) -> int:
        """Settle and publish in one step."""
        seq = next(self._seqs)
        publishes = [_publish(topic, one) for topic, one in events.items()]
        self._put(Finish(seq, channel, offsets, publishes))
        return seq

    def subscribe(
        self,
        topic: str,
        subscriber: str | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> int:
        seq = next(self._seqs)
        self._put(Subscribe(seq, topic, subscriber, **options))
        self._topics[seq] = topic
        return seq

    def fetch(self, topic: str, offset: int, end: int, max_bytes: int) -> int:
        seq = next(self._seqs)
        self._put(Fetch(seq, topic, offset, end, max_bytes))
        return seq

    def stage(
        self,
        place: tuple[str, int, int, int],
        piece: int,
        topic: str,
        events: Outgoing,
    ) -> int:
        """Leave a piece at a place: query, epoch, partition, attempt."""
        seq = next(self._seqs)
        self._put(Stage(seq, *place, _publish(topic, events), piece))
        return seq

    def ask(self, verb: str, arguments: dict[str, object]) -> int:
        seq = next(self._seqs)
        self._put(Ask(seq, verb, arguments))
        return seq

    def settle(self, channel: int, offsets: Sequence[int]) -> None:
        self._put(Settle(channel, list(offsets)))

    def prefetch(self, channel: int, events: int) -> bool:
        """Let a channel have so many unsettled events; False if that is not known."""
        if self._tells_limit:
            self._put(Prefetch(channel, events))
        return self._tells_limit

    def refuse(
        self,
        channel: int,
        offset: int,
        error: str,
        kind: str = "",
        traceback: str = "",
        duration_s: float | None = None,
        *,
        final: bool = False,
    ) -> None:
        self._put(Refuse(channel, offset, error, kind, traceback, duration_s, final))

    def unsubscribe(self, channel: int, unbegun: Sequence[int] = ()) -> int:
        seq = next(self._seqs)
        self._put(Unsubscribe(seq, channel, list(unbegun)))
        return seq

    def flush_acks(self) -> None:
        """Have acks that were saved up sent."""
        for inbox in self.inboxes.values():
            if inbox.acks:
                self.settle(inbox.channel, inbox.acks)
                inbox.acks = []

    def output(self) -> bytes:
        """What is to be sent now."""
        self.said += 1
        output, self._output = self._output, []
        parts = [one if isinstance(one, bytes) else one() for one in output]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _put(self, message: ClientMessage) -> None:
        self._output.append(encode(message))
        self.said += 1

    # What comes in

    def receive(self, data: bytes) -> list[int]:
        """File what came; the seqs that are answered now.

        Raises RemoteProtocolError, or ServerRefused if the server turns us away, or
        TlsFailed if it wants to be spoken to in TLS.
        """
        if not self._begun:
            self._begun = True
            if data.startswith(_TURNED_AWAY):
                text = data.removeprefix(_TURNED_AWAY).decode(errors="replace").strip()
                raise remote_error(LimitReached.__name__, text)
            if data.startswith(ALERT):
                raise speaks_tls(self._where)
        answered: list[int] = []
        try:
            for body in self._splitter.feed(data):
                self._file(decode_server(body), answered)
        except RemoteProtocolError as error:
            if self.version:
                raise
            text = f"{error.text}; is it the native port of a server?"
            raise RemoteProtocolError(error.protocol, text) from None
        for seq in self._given_up.intersection(answered):
            self._given_up.discard(seq)
            self._answers.pop(seq, None)
        return answered

    def answer(self, seq: int) -> ServerMessage | None:
        """The answer, once; None if there is none yet. Raises ServerRefused."""
        found = self._answers.pop(seq, None)
        if isinstance(found, RequestRefused):
            raise refusal(found)
        return found

    def take(self, seq: int) -> ServerMessage | None:
        """The same, whatever it says."""
        return self._answers.pop(seq, None)

    def inbox(self, channel: int) -> Inbox:
        """The inbox of a subscription, wherever that has gone since."""
        while channel in self._successors:
            channel = self._successors[channel]
        return self.inboxes[channel]

    def forget(self, seq: int) -> None:
        """The caller does not wait for this answer any more."""
        self._answers.pop(seq, None)

    def give_up(self, seq: int) -> None:
        """The caller will not wait for this answer, whenever it comes."""
        if self._answers.pop(seq, None) is None:
            self._given_up.add(seq)

    def _file(self, message: ServerMessage, answered: list[int]) -> None:
        match message:
            case Events():
                inbox = self.inboxes.get(message.channel)
                if inbox is not None:  # left while it was on its way
                    inbox.batches.append(message)
            case Published() | Answer() | Fetched():
                self._answers[message.seq] = message
                answered.append(message.seq)
            case Subscribed():
                topic = self._topics.pop(message.seq)
                self.inboxes[message.channel] = Inbox(topic, message.channel)
                self._answers[message.seq] = message
                answered.append(message.seq)
            case RequestRefused(0) if self.version:
                self.farewell = message
            case RequestRefused():
                self._topics.pop(message.seq, None)
                self._answers[message.seq] = message
                answered.append(message.seq)
            case Welcome():
                self.version = message.version
                if message.max_message_bytes:
                    self._tells_limit = True
                    self.max_frame_bytes = message.max_message_bytes
                self._answers[HELLO] = message
                answered.append(HELLO)
            case ChannelMoved():
                inbox = self.inboxes.pop(message.channel, None)
                if inbox is not None:
                    self._successors[message.channel] = message.to
                    self.inboxes[message.to] = inbox
                    inbox.begin_anew(message.to)
            case Ended():
                if message.channel in self.inboxes:
                    self.inboxes[message.channel].ended = message.reason
            case _:
                assert_never(message)


def refusal(problem: RequestRefused) -> ServerRefused:
    """What the server raised, to be raised here."""
    return remote_error(problem.error, problem.text, problem.hint, problem.fields)


def _publish(
    topic: str, events: Outgoing, seq: int = 0, units: list[int] | None = None
) -> Publish:
    """Events in a message; inside another message that one has the seq."""
    columns = events.columns
    return Publish(
        seq,
        topic,
        columns.payloads,
        dedup_ids=events.dedup_ids,
        units=units,
        **columns.given(),
    )
