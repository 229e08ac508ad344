"""SUBSCRIBE and UNSUBSCRIBE, and the retained messages that a subscription brings.

What was retained is looked up when everything published before the SUBSCRIBE is
committed, so that nothing falls between what was retained and what comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from penstock.access.grants import Grants, covers
from penstock.broker.promised import has_ended
from penstock.errors import InvalidName, QuotaReached
from penstock.gateway.mqtt.hub import MqttHub, subscriber_of
from penstock.gateway.mqtt.outbound import Outbound
from penstock.gateway.mqtt.writing import PublishMark
from penstock.gateway.outbox import Outbox
from penstock.model.topic_filter import check_filter, matches, shared
from penstock.sessions import Session, TopicFilter
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.routes import FILTER_STEPS
from penstock.wire.mqtt import (
    Malformed,
    Property,
    Reason,
    RequestedFilter,
    SubscribePacket,
    UnsubscribePacket,
    number,
    suback,
    unsuback,
)

# What is taken in before others have their turn, and what a filter counts for itself.
PIECE_BYTES = 16 << 10
FILTER_BYTES = 100
# So much of a filter is checked in one step, as Routes counts them.
STEP_LETTERS = 50
# What the values of ``$SYS`` topics take, as Routes counts it.
SHOW_STEPS = 500
# Topics with something retained that are looked at before others have their turn; and
# what one that is shown counts.
PIECE_RETAINED = 5_000
SHOWN = 100
MAX_QOS = 2

AnyFilter = TypeVar("AnyFilter")


class Due(NamedTuple):
    """Retained messages of a filter, to be looked up once a group is committed."""

    group: int
    topic_filter: TopicFilter
    below: int


class Subscribing:
    __slots__ = (
        "_due",
        "_hub",
        "_look",
        "_looked",
        "_outbound",
        "_outbox",
        "_session",
        "_showing",
        "_version",
        "system_filters",
    )

    def __init__(
        self,
        hub: MqttHub,
        session: Session,
        outbox: Outbox[PublishMark],
        version: int,
        outbound: Outbound,
    ) -> None:
        self._hub = hub
        self._session = session
        self._outbox = outbox
        self._version = version
        self._outbound = outbound
        self._due: deque[Due] = deque()
        self._showing: Iterator[tuple[int, TopicFilter]] | None = None
        self._look: Iterator[None] | None = None
        """At shares, as filters came or went."""
        self._looked = 0
        """How much was looked at of what is retained, in this turn."""
        self.system_filters = {
            filter_: None
            for filter_ in session.topic_filters
            if hub.system.knows(filter_)
        }

    @property
    def busy(self) -> bool:
        """Whether there is anything to look up, or to show."""
        return bool(self._due) or self._showing is not None

    @property
    def waits(self) -> bool:
        """Whether a commit is waited for."""
        return bool(self._due)

    def subscribe(self, packet: SubscribePacket, grants: Grants) -> Iterator[None]:
        """Take filters in, piece by piece, and answer.

        A filter that comes twice in the same words is looked at once, answered twice.
        """
        identifier = number(packet.properties, Property.SUBSCRIPTION_IDENTIFIER) or 0
        reasons: dict[RequestedFilter, int] = {}
        due: list[Due] = []
        filters = list(_distinct(packet.filters))
        for piece in _pieces(filters, lambda one: len(one.filter)):
            topic_filters: dict[str, TopicFilter] = {}
            for one in piece:
                reasons[one] = self._topic_filter(
                    one, identifier, grants, topic_filters, due
                )
            yield from self._watched(
                self._hub.broker.sessions.subscribe_all(
                    self._session, topic_filters.values()
                )
            )
        self._due += due
        codes = [reasons[one] for one in packet.filters]
        self._answer(suback(self._version, packet.packet_id, codes, {}))
        self._show_system(
            [one.filter for one, code in reasons.items() if code <= MAX_QOS]
        )

    def unsubscribe(self, packet: UnsubscribePacket) -> Iterator[None]:
        """End filters; a filter that is none is refused, or the client has to go.

        UNSUBACK has no word for that before version 5, so it is a violation of the
        protocol there (3.1.1: MQTT-4.7.1-2, MQTT-4.8.0-1).
        """
        filters = list(dict.fromkeys(packet.filters))
        bad: set[str] = set()
        for one in filters:
            if not self._is_filter(one):
                bad.add(one)
            yield
        if bad and self._version < 5:
            text = f"UNSUBSCRIBE has {min(bad)[:80]!a}, which is no filter"
            raise Malformed(Reason.TOPIC_FILTER_INVALID, text)
        known: set[str] = set()
        for piece in _pieces(filters, len):
            known.update(one for one in piece if one in self._session.topic_filters)
            for one in piece:
                self.system_filters.pop(one, None)
            yield from self._watched(
                self._hub.broker.sessions.unsubscribe_all(self._session, piece)
            )
        reasons = []
        for one in packet.filters:
            reasons.append(_unsubscribed(one, bad, known))
            known.discard(one)  # the second time there is none
        self._answer(unsuback(self._version, packet.packet_id, reasons, {}))

    def _watched(self, look: Iterator[None]) -> Iterator[None]:
        """Go through something, which must come to its end; see ``leave``."""
        self._look = look
        yield from _each(look)
        self._look = None
        yield

    def leave(self) -> None:
        """The client has gone: what was begun is completed without it."""
        if self._look is not None:
            self._hub.broker.sessions.routes.defer(self._session, self._look)
            self._look = None

    def _topic_filter(
        self,
        wanted: RequestedFilter,
        identifier: int,
        grants: Grants,
        topic_filters: dict[str, TopicFilter],
        due: list[Due],
    ) -> int:
        """Take a filter to the others; the reason code that says so, or why not."""
        reason = self._refusal(wanted, grants)
        if reason is not None:
            return reason
        session = self._session
        known = wanted.filter in session.topic_filters or wanted.filter in topic_filters
        more = len(topic_filters.keys() - session.topic_filters.keys()) + 1
        if (
            not known
            and len(session.topic_filters) + more > self._hub.options.max_filters
        ):
            return Reason.QUOTA_EXCEEDED
        if not known and not self._has_room(more):
            return Reason.QUOTA_EXCEEDED
        topic_filter = TopicFilter(
            wanted.filter,
            wanted.qos,
            wanted.no_local,
            wanted.retain_as_published,
            identifier,
        )
        topic_filters[wanted.filter] = topic_filter
        if self._hub.system.knows(wanted.filter):
            self.system_filters[wanted.filter] = None
        broker = self._hub.broker
        retained = topic_filter.share is None and (
            wanted.retain_handling == 0 or (wanted.retain_handling == 1 and not known)
        )
        if retained and broker.retained.end:  # MQTT-3.3.1-9 to MQTT-3.3.1-11
            due.append(Due(broker.promised, topic_filter, broker.retained.end))
        return wanted.qos

    def _has_room(self, more: int) -> bool:
        """Whether the user may have so many more."""
        try:
            self._hub.broker.accounts.subscribes(more)
        except QuotaReached:
            return False
        return True

    def _refusal(self, wanted: RequestedFilter, grants: Grants) -> Reason | None:
        """Why a filter is not taken in; None if it may be."""
        if not self._is_filter(wanted.filter):
            return Reason.TOPIC_FILTER_INVALID
        share = shared(wanted.filter)
        plain = wanted.filter if share is None else share[1]
        if matches(plain, RETAINED):
            return Reason.NOT_AUTHORIZED  # what was retained comes with its own topic
        if share is not None and wanted.no_local:  # MQTT-3.8.3-4
            raise Malformed(Reason.PROTOCOL_ERROR, "no local for a shared subscription")
        if not grants.may_subscribe(wanted.filter, subscriber_of(self._session.client)):
            return Reason.NOT_AUTHORIZED
        for one in self._hub.options.refused_filters:
            # A wider filter is granted, and does not bring what is refused: routes.py.
            if covers(one, plain) or covers(one, wanted.filter):
                return Reason.UNSPECIFIED_ERROR
        return None

    def _is_filter(self, text: str) -> bool:
        steps = FILTER_STEPS + len(text) // STEP_LETTERS
        self._hub.broker.sessions.routes.steps += steps
        try:
            shared(text)
            check_filter(text)
        except InvalidName:
            return False
        return True

    def _answer(self, data: bytes) -> None:
        if self._session.durable:
            self._outbox.after(self._hub.broker.promised, data)
        else:
            self._outbox.now(data)

    def _show_system(self, filters: list[str]) -> None:
        wanted = [one for one in filters if one in self.system_filters]
        if not wanted:
            return
        self._hub.broker.sessions.routes.steps += SHOW_STEPS
        writer = self._outbound.writer
        for topic, payload in self._hub.system.now(wanted):
            self._outbox.now(writer.value(topic, payload, retain=True))

    # What was retained

    def retained(self, now_s: float, room: int) -> list[bytes]:
        """Retained messages of QoS 0 that may go now; others are owed from here on."""
        sent: list[bytes] = []
        self._looked = 0
        while room > 0 and self._looked < PIECE_RETAINED:
            if self._showing is None and not self._next():
                break
            assert self._showing is not None, "there is one now"
            found = next(self._showing, None)
            if found is None:
                self._showing = None
                continue
            self._looked += SHOWN
            data = self._outbound.show_retained(*found, now_s)
            room -= len(data)
            sent.append(data)
        if self._showing is not None or self._looked >= PIECE_RETAINED:
            self._hub.broker.awake[self._session.outlet] = None
        return sent

    def _next(self) -> bool:
        """Begin with the next filter whose time has come."""
        log = self._hub.broker.log
        while self._due and self._looked < PIECE_RETAINED:
            group, topic_filter, below = self._due[0]
            if not has_ended(log, group):
                return False
            self._due.popleft()
            routes = self._hub.broker.sessions.routes
            kept = self._hub.broker.retained
            self._looked += len(kept)
            offsets = kept.of(topic_filter.filter, below, left_out=routes.withholds)
            if topic_filter.qos:
                self._owe(topic_filter, list(offsets))
            else:
                self._showing = ((offset, topic_filter) for offset in offsets)
                return True
        return False

    def _owe(self, topic_filter: TopicFilter, offsets: list[int]) -> None:
        if offsets:
            routes, session = self._hub.broker.sessions.routes, self._session
            share = routes.retained_share(session, durable=session.durable)
            for offset in offsets:
                self._outbound.owe_retained(share, offset, topic_filter)


def _pieces(
    filters: list[AnyFilter], length: Callable[[AnyFilter], int]
) -> Iterator[list[AnyFilter]]:
    """Filters, a few at a time: each takes a while to be checked, long ones longer."""
    piece: list[AnyFilter] = []
    size = 0
    for one in filters:
        piece.append(one)
        size += FILTER_BYTES + length(one)
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    yield piece


def _distinct(filters: list[RequestedFilter]) -> Iterator[RequestedFilter]:
    """Filters without those that were wanted in the same way just before."""
    last: dict[str, RequestedFilter] = {}
    for one in filters:
        if last.get(one.filter) != one:
            last[one.filter] = one
            yield one


def _each(look: Iterator[None]) -> Iterator[None]:
    """Go through it; a caller that leaves off has not ended it."""
    for _ in look:
        yield


def _unsubscribed(filter_: str, bad: set[str], known: set[str]) -> Reason:
    if filter_ in bad:
        return Reason.TOPIC_FILTER_INVALID
    return Reason.SUCCESS if filter_ in known else Reason.NO_SUBSCRIPTION_EXISTED
