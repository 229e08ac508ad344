"""Events of a page as packets: runs of what is said alike.

A delivery has the lower QoS of publish and subscription (MQTT-3.8.4-8). With QoS 2, and
a session that is to survive a crash, it leaves when the journal knows its packet id:
the client remembers the id, so nothing else may ever be sent under it before it is
completed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import groupby

import msgspec
from msgspec.structs import replace

from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.gateway.mqtt.headers import (
    EXPIRES,
    RETAIN,
    is_plain,
    left_s,
    published_qos,
    to_properties,
)
from penstock.gateway.mqtt.hub import MqttHub
from penstock.gateway.mqtt.writing import Form, PacketWriter, PublishMark
from penstock.gateway.outbox import Outbox
from penstock.sessions import Session, Share, TopicFilter
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.session import DeliveryTerms
from penstock.wire.mqtt import Properties, Property


class SentPage(msgspec.Struct, frozen=True, gc=False):
    """Events of a page on their way to the client."""

    share: Share
    consumer: Consumer
    page: Page
    terms: DeliveryTerms


class Delivering:
    __slots__ = (
        "_hub",
        "_outbox",
        "_quota",
        "_held_bytes",
        "_session",
        "_stalled",
        "_unreleased",
        "_unsaid",
        "_window",
        "_wanted_by",
        "writer",
    )

    def __init__(
        self,
        hub: MqttHub,
        session: Session,
        outbox: Outbox[PublishMark],
        writer: PacketWriter,
        window: int,
    ) -> None:
        self._hub = hub
        self._session = session
        self._outbox = outbox
        self.writer = writer
        self._window = self._quota = window
        self._wanted_by: dict[int, TopicFilter] = {}
        """Which filter a retained message is for, by its place."""
        self._stalled: dict[Consumer, None] = {}
        """Who has more than the client may have unanswered."""
        self._unsaid = deque(session.packet_ids.out)
        """Ids of what was sent over another connection, to be sent again first."""
        self._unreleased: set[int] = set()
        """Ids whose PUBREL has not left yet."""
        self._held_bytes = 0

    def _portion(self, one: SentPage, portion: Portion, now_s: float) -> list[bytes]:
        page, lo, hi, terms = portion.page, portion.lo, portion.hi, one.terms
        headers = page.common_headers
        if (
            headers is None
            or terms.no_local
            or EXPIRES in headers
            or page.expires is not None
            or (self.writer.version == 5 and page.has_priorities)
        ):
            return self._mixed(one, lo, hi, now_s)
        form = self._form(one.share.topic, terms, headers, 0, 0, now_s)
        return self._run(one, lo, hi, form)

    def _mixed(self, one: SentPage, lo: int, hi: int, now_s: float) -> list[bytes]:
        """Events that are not all alike: neighbours that are go together."""
        terms, headers = one.terms, one.page.headers
        producers = one.page.producers if terms.no_local else []
        priorities, expires = one.page.priorities, one.page.expires
        sent: list[bytes] = []

        def alike(index: int) -> tuple[dict[str, str], int, int, bool]:
            own = terms.no_local and producers[index] == self._session.producer
            end_ms = 0 if expires is None else expires[index]
            return headers[index], priorities[index], end_ms, own

        for (said, priority, end_ms, own), run in groupby(range(lo, hi), key=alike):
            places = list(run)
            first, end = places[0], places[-1] + 1
            # Who has an event of the column, though its time is over, is owed it again.
            left = None if end_ms else left_s(said, now_s)
            if own or (left is not None and left <= 0):  # MQTT-3.8.3-3, MQTT-3.3.2-5
                self._waive(one, first, end)
                continue
            form = self._form(one.share.topic, terms, said, priority, end_ms, now_s)
            again = 0 < end_ms <= now_s * 1000
            sent += self._run(one, first, end, form, again=again)
        return sent

    def _form(
        self,
        topic: str,
        terms: DeliveryTerms,
        headers: Mapping[str, str],
        priority: int,
        expires_ms: int,
        now_s: float,
        *,
        retained: bool = False,
    ) -> Form:
        """How an event with these headers is said to the client."""
        qos = min(terms.qos, published_qos(headers))
        # MQTT-3.3.1-12, MQTT-3.3.1-13
        retain = retained or (terms.retain_as_published and RETAIN in headers)
        properties: Properties | None = None
        if self.writer.version == 5:
            properties = {}
            if priority or expires_ms or not is_plain(headers):
                properties = to_properties(headers, priority, now_s, expires_ms)
            if terms.identifiers:  # MQTT-3.3.4-3
                properties[Property.SUBSCRIPTION_IDENTIFIER] = list(terms.identifiers)
        return Form(topic, qos, retain, properties)

    def _run(
        self, one: SentPage, lo: int, hi: int, form: Form, *, again: bool = False
    ) -> list[bytes]:
        """Events that are said alike; ``again``: sent once more from dead letters."""
        page, writer = one.page, self.writer
        if writer.max_packet is not None and hi - lo > 1:
            return [
                data
                for at in range(lo, hi)
                for data in self._run(one, at, at + 1, form, again=again)
            ]
        if not writer.fits(form, page.payloads[lo]):
            self._waive(one, lo, hi)
            return []
        if again and not form.qos:
            # A restart leaves none of them out, so it must know which were sent.
            self._waive(one, lo, hi, urgent=True)
            return self._hold(writer.publishes(form, page.payloads[lo:hi], held=True))
        if not form.qos:
            self._waive(one, lo, hi)
            postponed, lo = self._known_unsent(one, lo, hi)
            if lo == 0 and hi == len(page):
                return [writer.page(form, page)]
            payloads = postponed + page.payloads[lo:hi]
            return [writer.publishes(form, payloads)] if payloads else []
        ids = self._ids(one, lo, hi, form.qos)
        held = form.qos == 2 and self._session.durable
        data = writer.publishes(form, page.payloads[lo:hi], ids, held=held)
        return self._hold(data) if held else [data]

    def _hold(self, data: bytes) -> list[bytes]:
        """Have packets leave when the journal knows of them; none leave now."""
        self._outbox.after(self._hub.broker.promised, data)
        self._held_bytes += len(data)
        return []

    def _known_unsent(self, one: SentPage, lo: int, hi: int) -> tuple[list[bytes], int]:
        """What of a run was surely not sent before a start, and where the rest begins.

        An event whose time had not come when the broker began was sent to no client.
        """
        page, share = one.page, one.share
        if not share.quiet:
            return [], lo
        first = min(max(lo, page.index_of(share.quiet)), hi)
        times, began_ms = page.not_before, self._hub.broker.sessions.began_ms
        if times is None:
            return [], first
        found = [page.payloads[at] for at in range(lo, first) if times[at] > began_ms]
        return found, first

    def _again(self, one: SentPage, index: int, id_: int, now_s: float) -> bytes:
        """An event that the client was sent before and may have (MQTT-3.3.1-1).

        Nothing, if it is too large for the client by now.
        """
        headers = headers_at(one.page, index)
        topic, terms = one.share.topic, one.terms
        retained = topic == RETAINED
        if retained:
            topic = retained_topic(one.page, index)
            terms = self._retained_terms(one.page, index)
        priority, end_ms = one.page.priorities[index], expires_at(one.page, index)
        form = self._form(
            topic, terms, headers, priority, end_ms, now_s, retained=retained
        )
        form = replace(form, qos=self._session.packet_ids.out[id_].qos)
        payload = one.page.payloads[index]
        if not self.writer.fits(form, payload):
            return b""
        return self.writer.publishes(form, [payload], [id_], dup=True)

    # Bookkeeping

    def _ids(self, one: SentPage, lo: int, hi: int, qos: int) -> list[int]:
        page = one.page
        offsets: Sequence[int] = range(page.base + lo, page.base + hi)
        if not page.dense:
            offsets = page.batch.offsets()[lo:hi]
        self._quota -= hi - lo
        session = self._session
        number = one.share.subscription.number
        ids = session.packet_ids.send(number, offsets, qos)
        self._hub.broker.sessions.note(session, urgent=qos == 2)
        return ids

    def _waive(self, one: SentPage, lo: int, hi: int, *, urgent: bool = False) -> None:
        """No answer comes for these: they are settled by being sent, or left out."""
        subscription = one.share.subscription
        if subscription.policy.qos:
            offset_of = one.page.offset_of
            offsets = [offset_of(index) for index in range(lo, hi)]
            subscription.settle_all(offsets, one.consumer, urgent=urgent)
            self._hub.broker.wake_offered(subscription)

    def _retained_terms(self, page: Page, index: int) -> DeliveryTerms:
        """As the filter says that asked for it; after a restart, as all of them do."""
        topic_filter = self._wanted_by.pop(page.offset_of(index), None)
        if topic_filter is not None:
            return terms_of(topic_filter)
        topic = retained_topic(page, index)
        return self._hub.broker.sessions.routes.terms_of(self._session, topic)


def terms_of(topic_filter: TopicFilter) -> DeliveryTerms:
    """How what was retained reaches who makes a filter."""
    identifiers = (topic_filter.identifier,) if topic_filter.identifier else ()
    return DeliveryTerms(topic_filter.qos, False, True, identifiers)


def headers_at(page: Page, index: int) -> Mapping[str, str]:
    common = page.common_headers
    return page.headers[index] if common is None else common


def expires_at(page: Page, index: int) -> int:
    """When an event expires, in milliseconds; 0: never."""
    return 0 if page.expires is None else page.expires[index]


def retained_topic(page: Page, index: int) -> str:
    """What a retained message was published to."""
    key = page.keys[index]
    assert key is not None, "every retained message has its topic"
    return key.decode()
