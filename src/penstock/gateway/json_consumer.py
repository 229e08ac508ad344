"""The consumers' side of the JSON gateway: login, subscriptions, QoS 2 outwards.

A delivery is one PUB at a time per topic. Its ``msgId`` is made of its offset and the
number of its topic: the same for every consumer and after a restart, never given to
another event, and unique over all topics, because PUBREL names no topic. PUBREL leaves
when the PUBREC is durable; the next PUB follows the OK of the PUBCOMP. See
delivery/handshake.py.
"""

from __future__ import annotations

from typing import assert_never

from penstock.broker.broker import Broker
from penstock.broker.names import RESERVED
from penstock.delivery.consumer import Consumer
from penstock.delivery.handshake import Reply
from penstock.delivery.owed import Owed
from penstock.delivery.states import RELEASED
from penstock.gateway.gateway import LOGIN_BYTES, LoginRequest
from penstock.gateway.json_lines import JsonGateway
from penstock.gateway.options import JsonOptions
from penstock.model.event import TIMES
from penstock.model.policy import Policy
from penstock.wire.jsonq import (
    ConsumerPacket,
    LineRefusal,
    Login,
    Pubcomp,
    Pubrec,
    Sub,
    Unsub,
    parse_consumer,
    replies,
)

_LOST = replies.error("not stored: the write failed, send it again")


# Small ids for young topics, and exact in a double for 9 000 million events.
MSG_ID_STEP = 1_000_000


class JsonShare:
    """A connection's share in one topic."""

    __slots__ = ("blocked", "consumer")

    def __init__(self, consumer: Consumer) -> None:
        self.consumer = consumer
        self.blocked = 0
        """Answers that have to go before the next PUB."""


class JsonConsumerGateway(JsonGateway[ConsumerPacket, JsonShare]):
    """One connection of a consumer."""

    side = "consumer"
    commands = replies.CONSUMER_HELP

    def __init__(
        self,
        broker: Broker,
        options: JsonOptions,
        users: dict[str, JsonConsumerGateway],
        *,
        authenticate: bool = False,
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        super().__init__(broker, options, settled=False, login_bytes=login_bytes)
        self._users = users
        """Who is connected; shared by all connections."""
        self._authenticate = authenticate
        self._user: str | None = None
        self._shares: dict[str, JsonShare] = {}

    def connected(self, now_s: float) -> None:
        self._outbox.now(replies.PLEASE_LOGIN)

    def output(self, now_s: float, room: int) -> list[bytes]:
        out: list[bytes] = []
        for data, share in self._outbox.take():
            out.append(data)
            if share is not None:
                share.blocked -= 1
        room -= sum(map(len, out))
        for share in self._shares.values():
            if room <= 0:
                break
            if not share.blocked:
                sent = self._push(share, now_s)
                room -= sum(map(len, sent))
                out += sent
        if self._outbox:
            self._broker.waiting[self] = None
        return out

    def disconnected(self, now_s: float) -> None:
        for share in self._shares.values():
            self._broker.detach(share.consumer)
        self._shares.clear()
        self._held = []
        if self._user is not None:
            del self._users[self._user]
            self._user = None

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        # The PUBREC may be younger than the last commit. No PUB goes before that: it
        # may have the same number by then, if its event is owed anew.
        share = self._shares[consumer.subscription.topic]
        for one in owed:
            data = replies.pubrel(self._msg_id(consumer, one.offset))
            share.blocked += 1
            self._outbox.after(self._broker.promised, data, mark=share)

    def moved(self, consumer: Consumer) -> None:
        """What comes next is sent as if nothing had been."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """Nothing is said: the protocol has no word for it."""
        self._shares.pop(consumer.subscription.topic, None)

    def _push(self, share: JsonShare, now_s: float) -> list[bytes]:
        sent: list[bytes] = []
        for portion in self._broker.take(share.consumer, now_s, 1):
            page, index = portion.page, portion.lo
            offset = page.offset_of(index)
            topic = share.consumer.subscription.topic
            msg_id = self._msg_id(share.consumer, offset)
            times = {one.name: getattr(page, one.column) for one in TIMES}
            given = {name: all_[index] for name, all_ in times.items() if all_}
            given = {name: time for name, time in given.items() if time}
            sent.append(replies.pub(topic, msg_id, page.payloads[index], given))
        return sent

    def _msg_id(self, consumer: Consumer, offset: int) -> int:
        number = self._broker.log.topic(consumer.subscription.topic).id
        return offset * MSG_ID_STEP + number % MSG_ID_STEP

    # Lines

    def _parse(self, line: bytes) -> ConsumerPacket | LineRefusal:
        return parse_consumer(line)

    def _try_login(self, login: Login | None, now_s: float) -> None:
        if login is not None and login.user.startswith(RESERVED):
            login = None
        if login is not None and self._is_named(login):
            self._enter(login.user, now_s)
        elif login is None or (login.password is None) == self._authenticate:
            self._not_in()
        elif login.password is not None:
            self.login = LoginRequest(login.user, login.password)
        else:
            self._enter(login.user, now_s)

    def _enter(self, user: str, now_s: float) -> None:
        if user in self._users:
            self._outbox.now(replies.NAME_TAKEN)
            self.closing = True
            return
        self._user = self.who = user
        self._users[user] = self
        self._settle()
        self._outbox.now(replies.LOGGED_IN)
        if self._options.resume_on_login:
            for one in self._broker.subscriptions.of_subscriber(user):
                # Under the same name another protocol may have some of its own.
                ours = one.policy.qos == 2 and one.policy.order == "log"
                wanted = ours and (one.active or one.suspended)
                # It may have been allowed when it was made.
                if wanted and self.grants.may_subscribe(one.topic, user):
                    self._attach(one.topic, now_s)

    def _packet(self, packet: ConsumerPacket, now_s: float) -> None:
        match packet:
            case Sub(topic):
                self._sub(topic, now_s)
            case Unsub(topic):
                self._unsub(topic)
            case Pubrec(msg_id, topic):
                self._answer(topic, msg_id, Reply.PUBREC, now_s)
            case Pubcomp(msg_id, topic):
                self._answer(topic, msg_id, Reply.PUBCOMP, now_s)
            case _:
                assert_never(packet)

    def _sub(self, topic: str, now_s: float) -> None:
        if topic in self._shares:
            self._outbox.now(replies.OK)
            return
        self.grants.check_subscribe(topic, self._user)
        if not self._broker.log.has_topic(topic):
            self._broker.create_topic(topic)
        share = self._attach(topic, now_s, answer=replies.OK)
        share.blocked += 1

    def _attach(self, topic: str, now_s: float, answer: bytes = b"") -> JsonShare:
        assert self._user is not None, "only after login"
        subscription = self._broker.subscribe(self._user, topic, self._policy())
        consumer = self._broker.attach(subscription, self)
        share = self._shares[topic] = JsonShare(consumer)
        if answer:
            # A topic that is taken back takes the subscription along.
            lost = None if self._broker.log.topic(topic).committed else _LOST
            self._outbox.after(self._broker.promised, answer, lost, share)
        self.released(consumer, self._broker.resume(consumer, now_s))
        return share

    def _unsub(self, topic: str) -> None:
        share = self._shares.pop(topic, None)
        if share is not None:
            self._broker.unsubscribe(share.consumer)
        elif self._user is not None:
            self.grants.check_subscribe(topic, self._user)
            self._broker.deactivate(self._user, topic)
        self._outbox.after(self._broker.promised, replies.OK)

    def _answer(self, topic: str, msg_id: int, answer: Reply, now_s: float) -> None:
        share = self._shares.get(topic)
        state = None
        if share is not None:
            offset, rest = divmod(msg_id, MSG_ID_STEP)
            if rest == self._msg_id(share.consumer, 0):
                state = self._broker.answer(share.consumer, offset, answer, now_s)
        if share is None or state is None:
            self._outbox.now(replies.UNKNOWN_MESSAGE)
            return
        data = replies.OK
        if state is RELEASED:
            data += replies.pubrel(msg_id)
        share.blocked += 1
        self._outbox.after(self._broker.promised, data, mark=share)

    def _policy(self) -> Policy:
        options = self._options
        return Policy(
            order="log",
            window=1,
            qos=2,
            ack_timeout_s=options.pub_interval_s,
            tries=options.pub_tries,
            exhausted="suspend",
            release_tries=options.pubrel_tries,
            release_interval_s=options.pubrel_interval_s,
        )
