"""What goes to a client, and what it answers.

Everything that a client was sent and did not answer is sent again, under the same ids,
when it comes back (MQTT-4.4.0-1).
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from msgspec.structs import replace

from penstock.delivery.consumer import Consumer
from penstock.delivery.handshake import Reply
from penstock.delivery.owed import Portion
from penstock.delivery.packet_ids import MAX_ID, InFlight
from penstock.delivery.pages import Page
from penstock.delivery.subscription import Subscription
from penstock.gateway.mqtt.delivering import (
    Delivering,
    SentPage,
    expires_at,
    headers_at,
    retained_topic,
    terms_of,
)
from penstock.gateway.mqtt.headers import left_s
from penstock.gateway.mqtt.writing import Form
from penstock.sessions import Share, TopicFilter
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.session import DeliveryTerms
from penstock.wire.mqtt import Malformed, PacketKind, Reason, render_ack, render_acks

_MANY = 1 << 20
# Retained messages that wait for their time, for one client: they take room in the
# window that it has for all that is retained.
MAX_LATE = 10_000
NOTHING = DeliveryTerms(0, False, False, ())
# Of a packet in flight.
_NUMBER, _OFFSET = itemgetter(0), itemgetter(1)
_PACKETS = {Reply.ACK: "PUBACK", Reply.PUBREC: "PUBREC", Reply.PUBCOMP: "PUBCOMP"}


class Outbound(Delivering):
    """The consuming half of a connection."""

    __slots__ = ()

    def resume(self) -> None:
        """Say again what was released; what was sent follows, in front of all else."""
        released = self._session.packet_ids.released
        # Their PUBCOMPs make room, so they take it: or it would be more than there is.
        self._quota -= len(released)
        if released:
            self._outbox.now(render_acks(PacketKind.PUBREL, list(released)))

    def lose(self, share: Share) -> None:
        """A topic is gone: what is unanswered of it is not waited for."""
        session = self._session
        before = len(session.packet_ids)
        self._hub.broker.sessions.routes.lose(session, share)
        self._regain(before - len(session.packet_ids))

    # Answers. Those that are wrong end the connection, behind those that are right.

    def acked(self, ids: list[int]) -> None:
        """PUBACK."""
        done = self._session.packet_ids.answered(Reply.ACK, ids)
        self._settle(done, urgent=False)
        self._regain(len(done))
        if len(done) < len(ids):
            self._check_turn(Reply.ACK, ids)

    def received(self, ids: list[int]) -> None:
        """PUBREC: PUBREL follows when the disk knows of it."""
        packet_ids = self._session.packet_ids
        durable = self._session.durable
        done = packet_ids.answered(Reply.PUBREC, ids)
        self._settle(done, urgent=durable)
        if durable and done:
            self._hub.broker.sessions.note(self._session, urgent=True)
        if len(done) < len(ids):
            self._check_turn(Reply.PUBREC, ids)
        released = packet_ids.released
        if self.writer.version < 5 or all(id_ in released for id_ in ids):
            data = render_acks(PacketKind.PUBREL, ids)
        else:
            unknown = Reason.PACKET_IDENTIFIER_NOT_FOUND
            data = b"".join(
                render_ack(
                    PacketKind.PUBREL, id_, 0 if id_ in released else unknown, {}, 5
                )
                for id_ in ids
            )
        self._unreleased.update(ids)
        if durable:
            self._outbox.after(self._hub.broker.promised, data, mark=ids)
        else:
            self._outbox.now(data, ids)

    def said_released(self, ids: list[int]) -> None:
        """PUBRELs have left: PUBCOMP may come."""
        self._unreleased.difference_update(ids)

    def completed(self, ids: list[int]) -> None:
        """PUBCOMP."""
        early = self._unreleased
        if early and not early.isdisjoint(ids):
            raise _wrong(Reply.PUBCOMP, next(id_ for id_ in ids if id_ in early))
        freed = self._session.packet_ids.completed(ids)
        if freed:
            self._hub.broker.sessions.note(self._session)
            self._regain(freed)
        if freed < len(ids):
            self._check_turn(Reply.PUBCOMP, ids)

    def _check_turn(self, answer: Reply, ids: list[int]) -> None:
        """Raise Malformed if the client answers a message in a way that is none.

        An id that nothing is in flight under is no offence: a client may have got the
        message over an earlier connection, or after what it was about has gone.
        """
        wrong = self._session.packet_ids.out_of_turn(answer, ids)
        if wrong is not None:
            raise _wrong(answer, wrong)

    def refused(self, id_: int, answer: Reply) -> None:
        """PUBACK or PUBREC with a failure: the client does not want it any more."""
        self._check_turn(answer, [id_])
        in_flight = self._session.packet_ids.refused(id_)
        if in_flight is not None:
            self._settle([in_flight], urgent=False)
            self._regain(1)

    def _settle(self, done: list[InFlight], *, urgent: bool) -> None:
        session = self._session
        for number, run in groupby(done, key=_NUMBER):
            share = session.shares.get(number)
            if share is None or share.consumer is None:
                continue
            offsets = list(map(_OFFSET, run))
            if offsets[-1] - offsets[0] != len(offsets) - 1:
                offsets.sort()
            share.subscription.settle_all(offsets, share.consumer, urgent=urgent)
            self._hub.broker.wake_offered(share.subscription)
            if _has_more(share.subscription):
                session.ready[share.consumer] = None
            if share.ending:
                self._hub.broker.sessions.routes.end(session, share)
        if done:
            self._hub.broker.sessions.note(session)

    def _regain(self, count: int) -> None:
        """MQTT-4.9.0-1, MQTT-4.9.0-2: so many more may be sent."""
        self._quota = min(self._quota + count, self._window)
        if self._stalled and self._quota > 0:
            self._session.ready.update(self._stalled)
            self._stalled.clear()

    # Events

    @property
    def busy(self) -> bool:
        """Whether there may be anything to send."""
        return bool(self._session.ready or self._unsaid)

    def push(self, now_s: float, room: int) -> list[bytes]:
        """Packets of events that may be sent now, about ``room`` bytes."""
        out: list[bytes] = []
        if self._unsaid:
            out = self._say_again(now_s, room)
            room -= sum(map(len, out))
        ready, self._held_bytes = self._session.ready, 0
        while ready and room > self._held_bytes and not self._unsaid:
            consumer = next(iter(ready))
            del ready[consumer]
            share = self._session.share_of(consumer)
            if share is None or share.consumer is not consumer or share.ending:
                continue
            sent = self._push_share(share, consumer, now_s)
            room -= sum(map(len, sent))
            out += sent
        return out

    def _say_again(self, now_s: float, room: int) -> list[bytes]:
        """What the client was sent before and has not answered."""
        session, sent = self._session, []
        while self._unsaid and self._quota > 0 and room > 0:
            id_ = self._unsaid.popleft()
            in_flight = session.packet_ids.out.get(id_)
            if in_flight is None:
                continue  # answered before it was said again
            share = session.shares.get(in_flight.number)
            data = b""
            if share is not None and share.consumer is not None:
                found = share.subscription.find(in_flight.offset)
                terms = self._hub.broker.sessions.routes.terms(session, share)
                if found is not None:
                    one = SentPage(share, share.consumer, found[0], terms)
                    data = self._again(one, found[1], id_, now_s)
            if not data:
                self._give_up(id_, in_flight)
                continue
            self._quota -= 1
            room -= len(data)
            sent.append(data)
        return sent

    def _give_up(self, id_: int, in_flight: InFlight) -> None:
        """An event cannot be sent again: it is gone, or too large for the client."""
        packet_ids = self._session.packet_ids
        packet_ids.abandon([id_])
        self._settle([in_flight], urgent=False)
        if id_ in packet_ids.released:
            self._outbox.now(render_acks(PacketKind.PUBREL, [id_]))

    def _push_share(
        self, share: Share, consumer: Consumer, now_s: float
    ) -> list[bytes]:
        broker, session = self._hub.broker, self._session
        limit = _MANY
        if share.subscription.policy.qos:
            limit = min(self._quota, MAX_ID - len(session.packet_ids))
            if limit <= 0:
                self._stalled[consumer] = None
                return []
        sent: list[bytes] = []
        retained = share.topic == RETAINED
        # Of what is retained, something newer may have taken the place of an older one.
        take = self._take_retained if retained else broker.take
        terms = NOTHING if retained else broker.sessions.routes.terms(session, share)
        taken = 0
        for portion in take(consumer, now_s, limit):
            taken += portion.hi - portion.lo
            one = SentPage(share, consumer, portion.page, terms)
            if retained:
                for index in range(portion.lo, portion.hi):
                    sent += self._retained(one, index, now_s)
            else:
                sent += self._portion(one, portion, now_s)
        if taken and (taken == limit or share.subscription.fresh.first() is not None):
            session.ready[consumer] = None
        if taken and share.topic_filter is not None:
            consumer.stand_behind()
        return sent

    def _take_retained(
        self, consumer: Consumer, now_s: float, limit: int
    ) -> list[Portion]:
        portions = consumer.take(now_s, limit)
        consumer.subscription.missed(now_s)
        return portions

    # What was retained

    def owe_retained(
        self, share: Share, offset: int, topic_filter: TopicFilter
    ) -> None:
        """Send a retained message as a subscription asks for it."""
        self._wanted_by[offset] = topic_filter
        share.subscription.add_back(offset, 0)
        if share.consumer is not None:
            self._session.ready[share.consumer] = None

    def show_retained(
        self, offset: int, topic_filter: TopicFilter, now_s: float
    ) -> bytes:
        """A retained message for who wants no more than QoS 0."""
        page = self._hub.broker.pages.at(RETAINED, offset)
        if page is None:
            return b""
        index = page.index_of(offset)
        if page.offset_of(index) != offset:
            return b""  # another one has taken its place
        if _due_s(page, index) > now_s:
            routes, session = self._hub.broker.sessions.routes, self._session
            share = routes.retained_share(session, durable=session.durable)
            self.owe_retained(share, offset, topic_filter)
            return b""
        form = self._retained_form(page, index, terms_of(topic_filter), now_s)
        if form is None or not self.writer.fits(form, page.payloads[index]):
            return b""
        return self.writer.publishes(replace(form, qos=0), [page.payloads[index]])

    def _retained(self, one: SentPage, index: int, now_s: float) -> list[bytes]:
        topic, offset = retained_topic(one.page, index), one.page.offset_of(index)
        routes, due_s = self._hub.broker.sessions.routes, _due_s(one.page, index)
        if due_s:  # it is sent as all filters say that there are by then
            self._wanted_by.pop(offset, None)
        # Another one may have its place.
        gone = self._hub.broker.retained.offset_of(topic) != offset
        unwanted = offset not in self._wanted_by and not routes.wants(
            self._session, topic
        )
        if gone or unwanted or routes.withholds(topic):
            self._waive(one, index, index + 1)
            return []
        if due_s > now_s:
            self._put_off(one, index, due_s)
            return []
        terms = self._retained_terms(one.page, index)
        form = self._retained_form(one.page, index, terms, now_s)
        if form is None:
            self._waive(one, index, index + 1)
            return []
        return self._run(one, index, index + 1, form)

    def _put_off(self, one: SentPage, index: int, due_s: float) -> None:
        """Keep a retained message back until its time has come."""
        subscription = one.share.subscription
        if subscription.owed.paused >= MAX_LATE:
            self._waive(one, index, index + 1)
            return
        offset = one.page.offset_of(index)
        subscription.put_back([offset], one.consumer)
        subscription.put_off_until(offset, due_s)
        self._hub.broker.timers.arm(subscription, due_s)

    def _retained_form(
        self, page: Page, index: int, terms: DeliveryTerms, now_s: float
    ) -> Form | None:
        headers = headers_at(page, index)
        end_ms = expires_at(page, index)
        left = left_s(headers, now_s, end_ms)
        if left is not None and left <= 0:
            return None
        topic, priority = retained_topic(page, index), page.priorities[index]
        return self._form(topic, terms, headers, priority, end_ms, now_s, retained=True)


def _has_more(subscription: Subscription) -> bool:
    """Whether anything may be sent that is not in flight.

    It is not enough that it was there when a client had no room: so it is asked for
    whenever some of that is free.
    """
    owed = subscription.owed
    return (
        subscription.keyed is not None
        or len(owed) > owed.in_flight + owed.paused
        or subscription.fresh.first() is not None
    )


def _due_s(page: Page, index: int) -> float:
    """From when on a message may be delivered; 0 for at once."""
    return 0.0 if page.not_before is None else page.not_before[index] / 1000


def _wrong(answer: Reply, id_: int) -> Malformed:
    text = f"{_PACKETS[answer]} for packet identifier {id_}, which waits for another"
    return Malformed(Reason.PROTOCOL_ERROR, text)
