"""The native gateway: publishing, consuming and the desk, for Penstock's own clients.

Everything that has a ``seq`` is answered once, by what it asked for or by a
RequestRefused. Answers keep the order of what they answer, but for fetches, which are
answered when there is room for what they bring.

A question may take a while, and many of them fit into one read: each waits for its
turn, with all that follows it, and between two of them all other peers are served.

Promises: Published leaves after the commit of the events, Subscribed and answers to
Unsubscribe and Ask after the commit of what they changed. Settle and Refuse have no
answer; a client that has to know that they count unsubscribes, or asks for ``settled``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import assert_never, cast

from penstock import __version__
from penstock.access.grants import OPEN, Grants
from penstock.broker.broker import Broker
from penstock.broker.names import accepted_subscriber
from penstock.broker.starts import accepted_start
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.desk.access import check_verb, owner_of
from penstock.desk.desk import Desk
from penstock.desk.verbs import Promise, Verb, call, unpacked
from penstock.errors import (
    InvalidOption,
    LoginRefused,
    PenstockError,
    RemoteProtocolError,
)
from penstock.gateway.gateway import LOGIN_BYTES, Gateway, LoginRequest
from penstock.gateway.native_events import messages, stage
from penstock.gateway.native_fetch import Fetcher
from penstock.gateway.native_pub import NativePublishing, not_stored, problem
from penstock.gateway.options import NativeOptions
from penstock.gateway.outbox import Outbox
from penstock.model.failure import REFUSED, Failure
from penstock.model.policy import POLICY, Policy, settings_in
from penstock.wire.native import (
    Answer,
    Ask,
    ChannelMoved,
    Ended,
    Fetch,
    Finish,
    FrameSplitter,
    Hello,
    LargeAsk,
    Prefetch,
    Publish,
    PublishRun,
    Received,
    Refuse,
    Settle,
    Stage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    decode_client,
    decode_run,
    encode,
)

# Answered when all that was settled before is stored.
SETTLED = "settled"
# What takes a turn of its own: each may take a while, and thousands fit into one read.
_QUESTIONS = frozenset({Ask, LargeAsk, Subscribe, Unsubscribe})
# Events that are asked for at once; the window and the bytes limit it first.
_MANY = 1 << 20
# Who got this much at once may have been stopped by the bytes, and is asked again.
MUCH_BYTES = 1 << 16
# Settings of a policy that a Subscribe says.
_SAID = tuple(name for name in POLICY if name in Subscribe.__struct_fields__)

_connections = count(1)


class NativeChannel:
    """A connection's share in one subscription."""

    __slots__ = ("blocked", "consumer", "number")

    def __init__(self, number: int, consumer: Consumer) -> None:
        self.number = number
        self.consumer = consumer
        self.blocked = True
        """Until Subscribed, or ChannelMoved, has left."""


class NativeGateway(Gateway):
    """One connection of the native protocol."""

    def __init__(
        self,
        broker: Broker,
        desk: Desk,
        options: NativeOptions,
        *,
        authenticate: bool = False,
        grants: Grants = OPEN,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        """``grants``: of a client that comes in without a login."""
        self.settled = False
        self.grants = grants
        self._broker = broker
        self._desk = desk
        self._options = options
        self._authenticate = authenticate
        limit = min(login_bytes, options.max_message_bytes)
        self._splitter = FrameSplitter(limit)
        self._number = next(_connections)
        self._outbox: Outbox[NativeChannel] = Outbox(broker.log)
        self._publisher = NativePublishing(broker, self._outbox)
        self._fetcher = Fetcher(broker, options)
        self._channels: dict[int, NativeChannel] = {}
        self._channel_of: dict[Consumer, NativeChannel] = {}
        self._ready: dict[Consumer, None] = {}
        """Those for whom there may be something to take."""
        self._last_channel = 0
        self._successors: dict[int, int] = {}
        """Channels that others took the place of, as their subscription was moved."""
        self._name = ""
        self._user = ""
        """Who has logged in, by the name of the user or of the token."""
        self._held: list[Received | PublishRun] = []
        """What waits for a login, or for its turn, from ``_at`` on."""
        self._at = 0
        self._wrong: RemoteProtocolError | None = None
        """What came behind all that is held, and is no message."""

    def receive(self, data: bytes, now_s: float) -> None:
        if self.closing:
            return
        received = self._held[self._at :]
        try:
            bodies = self._splitter.feed(data)
            done = 0
            if len(bodies) > 1:
                run, done = decode_run(bodies)
                if run is not None:
                    received.append(run)
            for body in bodies[done:] if done else bodies:
                received.append(decode_client(body))
        except RemoteProtocolError as error:
            self._wrong = error
        self._messages(received, 0, now_s)

    @property
    def busy(self) -> bool:
        return bool(self._held) and self.login is None and not self.closing

    def go_on(self, now_s: float) -> None:
        held, at = self._held, self._at
        self._message(held[at], now_s)
        self._messages(held, at + 1, now_s)

    def eof(self, now_s: float) -> None:
        self.closing = True

    def logged_in(self, ok: bool, now_s: float) -> None:
        request, self.login = self.login, None
        assert request is not None, "it is called after a login was asked for"
        if ok and (request.token is None or self.grants.admin):
            self._user = self.grants.token or request.user
            self._enter()
        else:
            self._refuse_all(self.refusal or _refusal(request, self.grants))
        self._messages(self._held, self._at, now_s)

    def turned_away(self, error: PenstockError, now_s: float) -> None:
        self.login = None
        self._refuse_all(error)

    def cut_off(self, reason: str, now_s: float) -> None:
        self._refuse_all(LoginRefused(reason))

    def output(self, now_s: float, room: int) -> list[bytes]:
        out: list[bytes] = []
        if not (self._ready or self._outbox or self._fetcher):
            return out  # as after most settlements
        for data, channel in self._outbox.take():
            out.append(data)
            room -= len(data)
            if channel is not None:
                channel.blocked = False
                self._ready[channel.consumer] = None
        # With subscribers one at a time, so that neither keeps the other waiting.
        while room > 0 and (fetched := self._fetcher.take()):
            out.append(fetched)
            room -= len(fetched)
            if self._channels:
                break
        if self._ready:
            self._serve(out, now_s, room)
        if self._outbox:
            self._broker.waiting[self] = None
        if self._fetcher:
            self._broker.awake[self] = None
        return out

    def _serve(self, out: list[bytes], now_s: float, room: int) -> None:
        """Add events, about ``room`` bytes; who gets none comes first the next time."""
        broker, ready = self._broker, self._ready
        turn, more = deque(ready), list[Consumer]()
        ready.clear()
        while turn and room > 0:
            consumer = turn.popleft()
            channel = self._channel_of.get(consumer)
            if channel is None or channel.blocked:
                continue  # it has ended, or is ready when its answer has left
            sent = messages(channel.number, broker.take(consumer, now_s, _MANY))
            if not sent:
                continue
            size = sum(map(len, sent))
            room -= size
            out += sent
            if not consumer.subscription.policy.qos:
                more.append(consumer)  # no answer will ask for what is left
                broker.awake[self] = None
            elif size >= MUCH_BYTES:
                more.append(consumer)
        if turn or more:
            again = [*turn, *ready, *more]
            ready.clear()
            ready.update(dict.fromkeys(again))

    def disconnected(self, now_s: float) -> None:
        for channel in self._channels.values():
            self._broker.detach(channel.consumer)
        self._channels.clear()
        self._channel_of.clear()
        self._ready.clear()
        self._held = []

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        raise AssertionError("this protocol has no PUBREL")

    def moved(self, consumer: Consumer) -> None:
        if (channel := self._channel_of.get(consumer)) is not None:
            number = channel.number
            del self._channels[number]
            following = self._last_channel = channel.number = self._last_channel + 1
            self._channels[following] = channel
            self._successors[number] = following
            channel.blocked = True
            self._outbox.now(encode(ChannelMoved(number, following)), channel)

    def ended(self, consumer: Consumer, reason: str) -> None:
        if (channel := self._channel_of.pop(consumer, None)) is not None:
            del self._channels[channel.number]
            self._outbox.now(encode(Ended(channel.number, reason)))

    # Messages

    def _messages(
        self, received: list[Received | PublishRun], at: int, now_s: float
    ) -> None:
        """Carry out messages from ``at`` on, up to one that has to wait."""
        end = len(received)
        while at < end and not self.closing:
            if self.login is not None or type(received[at]) in _QUESTIONS:
                self._held, self._at = received, at
                return
            run = at
            while run < end and self.settled and type(received[run]) is Publish:
                run += 1
            if run > at:
                # Publishes, as the loop has just seen; it is a hot path.
                self._publisher.publish(cast(list[Publish], received[at:run]), now_s)
                at = run
                continue
            self._message(received[at], now_s)
            at += 1
        self._held, self._at = [], 0
        if self._wrong is not None and self.login is None and not self.closing:
            self._refuse_all(self._wrong)

    def _message(self, message: Received | PublishRun, now_s: float) -> None:
        if isinstance(message, Hello) == self.settled:
            said = "Hello twice" if self.settled else "Hello has to come first"
            self._refuse_all(RemoteProtocolError("native", said))
            return
        match message:
            case Settle():
                self._settle(message)
            case Prefetch():
                self._guarded(0, lambda: self._prefetch(message))
            case Refuse():
                self._guarded(0, lambda: self._refuse(message, now_s))
            case Hello():
                self._hello(message)
            case PublishRun():
                self._publisher.run(message, now_s)
            case Publish():
                self._publisher.publish([message], now_s)
            case Finish():
                self._guarded(message.seq, lambda: self._finish(message, now_s))
            case Subscribe():
                self._guarded(message.seq, lambda: self._subscribe(message))
            case Unsubscribe():
                self._unsubscribe(message)
            case Stage():
                self._guarded(message.seq, lambda: self._stage(message, now_s))
            case Fetch():
                self._guarded(message.seq, lambda: self._fetcher.put(message))
            case Ask():
                self._guarded(message.seq, lambda: self._ask(message))
            case LargeAsk():
                self._guarded(message.seq, lambda: self._ask_large(message))
            case _:
                assert_never(message)

    def _guarded(self, seq: int, step: Callable[[], None]) -> None:
        try:
            step()
        except PenstockError as error:
            self._outbox.now(problem(seq, error))

    def _refuse_all(self, error: PenstockError) -> None:
        self._outbox.now(problem(0, error))
        self.closing = True

    def _hello(self, message: Hello) -> None:
        try:
            if message.name:
                self._name = accepted_subscriber(message.name)
            self.login = self._credentials(message)
        except PenstockError as error:
            self._refuse_all(error)
            return
        if self.login is None:
            self._enter()

    def _credentials(self, message: Hello) -> LoginRequest | None:
        """What is to be checked, if anything is; raises LoginRefused."""
        if message.token is not None:
            if message.user is not None:
                raise LoginRefused("say either a user and a password, or a token")
            return LoginRequest("", "", message.token)
        if not self._authenticate or self._is_named(message):
            return None
        if message.user is None or message.password is None:
            needed = "a user and a password, or a token of scope admin"
            raise LoginRefused(f"this server asks for {needed}")
        return LoginRequest(message.user, message.password)

    def _is_named(self, message: Hello) -> bool:
        """Whether the peer's certificate spares it the password."""
        if message.password is not None or not self.is_vouched(message.user):
            return False
        self._user = self.grants.user
        return True

    def _enter(self) -> None:
        self.settled = True
        self._splitter.max_bytes = self._options.max_message_bytes
        self._publisher.producer = self._name or None
        self._publisher.grants = self._fetcher.grants = self.grants
        self.who = self._name or self._user
        self._outbox.now(encode(Welcome(__version__, self._options.max_message_bytes)))

    # Consuming

    def _subscribe(self, message: Subscribe) -> None:
        self.grants.check_subscribe(message.topic, message.subscriber)
        broker = self._broker
        said = settings_in(message, _SAID)  # Policy checks them
        policy = Policy(qos=0 if message.auto_ack else 1, **said)
        start = accepted_start(message.start)
        number = self._last_channel + 1
        name, temporary = f"$native-{self._number}-{number}", True
        if message.subscriber is not None:
            name, temporary = accepted_subscriber(message.subscriber), False
        subscription = broker.subscribe(
            name, message.topic, policy, start, temporary=temporary
        )
        self._last_channel = number
        consumer = broker.attach(subscription, self, message.prefetch)
        consumer.ready = self._ready
        channel = self._channels[number] = NativeChannel(number, consumer)
        self._channel_of[consumer] = channel
        done = encode(Subscribed(message.seq, number, subscription.position()))
        if temporary:
            self._outbox.now(done, channel)
        else:
            self._outbox.after(broker.promised, done, mark=channel)

    def _settle(self, message: Settle) -> None:
        channel = self._channels.get(message.channel)
        if channel is None:
            return  # it ended while this was on its way
        consumer = channel.consumer
        subscription = consumer.subscription
        if not consumer.short_of_events:
            self._ready[consumer] = None
        subscription.settle_all(message.offsets, consumer)
        if len(subscription.consumers) > 1:  # there is room in the window for others
            self._broker.wake(subscription)

    def _prefetch(self, message: Prefetch) -> None:
        channel = self._channels.get(message.channel)
        if channel is None:
            return  # it ended, or was moved, while this was on its way
        if message.events < 1:
            raise InvalidOption("prefetch", message.events, "at least 1")
        channel.consumer.prefetch = message.events
        self._broker.wake(channel.consumer.subscription)

    def _finish(self, message: Finish, now_s: float) -> None:
        channel = self._channels.get(message.channel)
        consumer = None if channel is None else channel.consumer
        if consumer is not None:
            self._ready[consumer] = None
        self._publisher.finish(message, consumer, now_s)

    def _refuse(self, message: Refuse, now_s: float) -> None:
        channel = self._channels.get(message.channel)
        if channel is not None:
            self._ready[channel.consumer] = None
            failure = Failure(
                0,
                0,
                message.kind or REFUSED,
                message.error,
                message.traceback,
                message.duration_s,
            )
            self._broker.refuse(
                channel.consumer, message.offset, failure, now_s, final=message.final
            )

    def _unsubscribe(self, message: Unsubscribe) -> None:
        number = message.channel
        while number in self._successors:  # it was moved while this was on its way
            number = self._successors.pop(number)
        channel = self._channels.pop(number, None)
        if channel is not None:
            consumer = channel.consumer
            del self._channel_of[consumer]
            if number == message.channel:
                consumer.subscription.put_back(message.unbegun, consumer)
            self._broker.detach(consumer)
            # Also what settles by being sent: a client that leaves in order knows it
            # counts.
            consumer.subscription.note(urgent=True)
        done = encode(Answer(message.seq, None))
        self._outbox.after(self._broker.promised, done)

    def _stage(self, message: Stage, now_s: float) -> None:
        kept = stage(self._broker, message, self._publisher, now_s)
        self._outbox.now(encode(Answer(message.seq, kept)))

    # The desk

    def _ask(self, message: Ask) -> None:
        if message.verb == SETTLED:
            for channel in self._channels.values():
                # Also what settles by being sent, and waits for others to be written.
                channel.consumer.subscription.note(urgent=True)
            done = encode(Answer(message.seq, None))
            self._outbox.after(self._broker.promised, done)
            return
        verb = self._desk.find(message.verb)
        check_verb(self.grants, self._broker, verb.name, message.arguments)
        self._answer(verb, message)

    def _ask_large(self, message: LargeAsk) -> None:
        verb = self._desk.find(message.verb)
        arguments = unpacked(verb, message.arguments)
        self._ask(Ask(message.seq, verb.name, arguments))

    def _answer(self, verb: Verb, message: Ask) -> None:
        arguments = message.arguments
        if self._user and "by" in verb.arguments.__struct_fields__:
            arguments = {**arguments, "by": self._user}  # as they claim, or not
        if "owner" in verb.arguments.__struct_fields__:
            arguments = {**arguments, "owner": owner_of(self.grants)}
        result = call(verb, arguments)
        answer = encode(Answer(message.seq, result))
        if verb.promise is Promise.NOTHING:
            self._outbox.now(answer)
        else:
            kept = verb.promise is Promise.KEPT
            lost = None if kept else not_stored(message.seq)
            self._outbox.after(self._broker.promised, answer, lost)


def _refusal(request: LoginRequest, grants: Grants) -> LoginRefused:
    """Why a client is not let in; ``grants`` are those of a token that counts."""
    if request.token is None:
        return LoginRefused(f"wrong password for {request.user[:80]}")
    if grants.token:
        reason = "is not of scope admin: others are for HTTP"
        return LoginRefused(f"the token {grants.token[:80]} {reason}")
    return LoginRefused("the token is not known here, or has expired")
