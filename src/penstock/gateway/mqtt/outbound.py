"""What goes to a client, and what it answers.

Everything that a client was sent and did not answer is sent again, under the same ids,
when it comes back (MQTT-4.4.0-1).
"""

from __future__ import annotations

from itertools import groupby

from penstock.broker.retained import TOPIC as RETAINED
from penstock.broker.sessions import Share, Wish
from penstock.broker.sessions.session import Terms
from penstock.delivery.consumer import Consumer
from penstock.delivery.cursor import TAKE_BYTES
from penstock.delivery.flights import Flight
from penstock.delivery.handshake import Answer
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.gateway.mqtt.delivering import (
    Delivering,
    Delivery,
    headers_at,
    retained_topic,
    terms_of,
)
from penstock.gateway.mqtt.headers import left_s
from penstock.gateway.mqtt.writing import Form
from penstock.wire.mqtt import Kind, Reason, render_ack, render_acks

_MANY = 1 << 20
NOTHING = Terms(0, False, False, ())


class Outbound(Delivering):
    """The consuming half of a connection."""

    __slots__ = ()

    def resume(self) -> None:
        """Say again what was released; the rest is sent again as it is taken."""
        flights = self._session.flights
        self._forget_gone()
        if flights.released:
            self._outbox.now(render_acks(Kind.PUBREL, list(flights.released)))

    def _forget_gone(self) -> None:
        """Let go of ids of events that retention has taken meanwhile."""
        for (number, offset), id_ in list(self._resends.items()):
            share = self._session.shares.get(number)
            if share is None or share.subscription.find(offset) is None:
                self._session.flights.abandon([id_])
                del self._resends[number, offset]

    def lose(self, share: Share) -> None:
        """A topic is gone: what is unanswered of it is not waited for."""
        session = self._session
        before = len(session.flights)
        self._hub.broker.sessions.routes.lose(session, share)
        self._regain(before - len(session.flights))

    # Answers

    def acked(self, ids: list[int]) -> None:
        """PUBACK."""
        done = self._session.flights.answered(Answer.ACK, ids)
        self._settle(done, urgent=False)
        self._regain(len(done))

    def received(self, ids: list[int]) -> None:
        """PUBREC: PUBREL follows when the disk knows of it."""
        flights = self._session.flights
        durable = self._session.durable
        done = flights.answered(Answer.PUBREC, ids)
        self._settle(done, urgent=durable)
        if durable and done:
            self._hub.broker.sessions.note(self._session, urgent=True)
        released = flights.released
        if self.writer.version < 5 or all(id_ in released for id_ in ids):
            data = render_acks(Kind.PUBREL, ids)
        else:
            unknown = Reason.PACKET_IDENTIFIER_NOT_FOUND
            data = b"".join(
                render_ack(Kind.PUBREL, id_, 0 if id_ in released else unknown, {}, 5)
                for id_ in ids
            )
        if durable:
            self._outbox.after(self._hub.broker.promised, data)
        else:
            self._outbox.now(data)

    def completed(self, ids: list[int]) -> None:
        """PUBCOMP."""
        freed = self._session.flights.completed(ids)
        if freed:
            self._hub.broker.sessions.note(self._session)
            self._regain(freed)

    def refused(self, id_: int) -> None:
        """PUBACK or PUBREC with a failure: the client does not want it any more."""
        flight = self._session.flights.refused(id_)
        if flight is not None:
            self._settle([flight], urgent=False)
            self._regain(1)

    def _settle(self, done: list[Flight], *, urgent: bool) -> None:
        session = self._session
        for number, run in groupby(done, key=_number):
            share = session.shares.get(number)
            if share is None or share.consumer is None:
                continue
            offsets = sorted(flight.offset for flight in run)
            share.subscription.settle_all(offsets, share.consumer, urgent=urgent)
            session.ready[share.consumer] = None
            if share.ending:
                self._hub.broker.sessions.routes.end(session, share)
        if done:
            self._hub.broker.sessions.note(session)

    def _regain(self, count: int) -> None:
        """MQTT-4.9.0-1, MQTT-4.9.0-2: so many more may be sent."""
        self._quota = min(self._quota + count, self._window)
        if self._stalled and self._quota:
            self._session.ready.update(self._stalled)
            self._stalled.clear()

    # Events

    def push(self, now_s: float, room: int) -> list[bytes]:
        """Packets of events that may be sent now, about ``room`` bytes."""
        ready, out = self._session.ready, []
        while ready and room > 0:
            consumer = next(iter(ready))
            del ready[consumer]
            share = self._session.share_of(consumer)
            if share is None or share.consumer is not consumer:
                continue
            sent = self._push_share(share, consumer, now_s)
            room -= sum(map(len, sent))
            out += sent
        return out

    def _push_share(
        self, share: Share, consumer: Consumer, now_s: float
    ) -> list[bytes]:
        broker, session = self._hub.broker, self._session
        limit = _MANY
        if share.subscription.policy.qos:
            limit = self._quota
            if share.ending:  # only what was begun
                number = share.subscription.number
                limit = min(limit, sum(one == number for one, _ in self._resends))
                if limit <= 0:
                    return []
            elif limit <= 0:
                self._stalled[consumer] = None
                return []
        sent: list[bytes] = []
        taken = size = 0
        retained = share.topic == RETAINED
        # Of what is retained, something newer may have taken the place of an older one.
        take = self._take_retained if retained else broker.take
        terms = NOTHING if retained else broker.sessions.routes.terms(session, share)
        for portion in take(consumer, now_s, limit):
            taken += portion.hi - portion.lo
            size += sum(map(len, portion.page.payloads[portion.lo : portion.hi]))
            one = Delivery(share, consumer, portion.page, terms)
            if retained:
                sent += self._retained(one, portion.lo, now_s)
            else:
                sent += self._portion(one, portion, now_s)
        if taken and (taken >= limit or size * 2 >= TAKE_BYTES):
            session.ready[consumer] = None  # there may be more
        return sent

    def _take_retained(
        self, consumer: Consumer, now_s: float, limit: int
    ) -> list[Portion]:
        portions = consumer.take(now_s, limit)
        consumer.subscription.missed()
        return portions

    # What was retained

    def owe_retained(self, share: Share, offset: int, wish: Wish) -> None:
        """Send a retained message as a subscription asks for it."""
        self._wished[offset] = wish
        share.subscription.add_back(offset, 0)
        if share.consumer is not None:
            self._session.ready[share.consumer] = None

    def show_retained(self, offset: int, wish: Wish, now_s: float) -> bytes:
        """A retained message for who wants no more than QoS 0."""
        page = self._hub.broker.pages.at(RETAINED, offset)
        if page is None:
            return b""
        index = page.batch.index_of(offset)
        if page.batch.offset_of(index) != offset:
            return b""  # another one has taken its place
        form = self._retained_form(page, index, terms_of(wish), now_s)
        if form is None or not self.writer.fits(form, page.payloads[index]):
            return b""
        return self.writer.publishes(form._replace(qos=0), [page.payloads[index]])

    def _retained(self, one: Delivery, index: int, now_s: float) -> list[bytes]:
        if again := self._again(one, index, now_s):
            return [again]
        terms = self._retained_terms(one.page, index)
        form = self._retained_form(one.page, index, terms, now_s)
        if form is None:
            self._waive(one, index, index + 1)
            return []
        return self._run(one, index, index + 1, form)

    def _retained_form(
        self, page: Page, index: int, terms: Terms, now_s: float
    ) -> Form | None:
        headers = headers_at(page, index)
        left = left_s(headers, now_s)
        if left is not None and left <= 0:
            return None
        topic, priority = retained_topic(page, index), page.priorities[index]
        return self._form(topic, terms, headers, priority, now_s, retained=True)


def _number(flight: Flight) -> int:
    return flight.number
