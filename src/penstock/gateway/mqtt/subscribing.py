"""SUBSCRIBE and UNSUBSCRIBE, and the retained messages that a subscription brings.

What was retained is looked up when everything published before the SUBSCRIBE is
committed, so that nothing falls between what was retained and what comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from penstock.broker.access import Grants, covers
from penstock.broker.retained import TOPIC as RETAINED
from penstock.broker.sessions import Session, Wish
from penstock.errors import InvalidName, QuotaReached
from penstock.gateway.mqtt.hub import MqttHub, subscriber_of
from penstock.gateway.mqtt.outbound import Outbound
from penstock.gateway.mqtt.system import ROOT
from penstock.gateway.mqtt.writing import Mark
from penstock.gateway.outbox import Outbox
from penstock.model.topic_filter import check_filter, matches, shared
from penstock.wire.mqtt import (
    Malformed,
    Property,
    Reason,
    Subscribe,
    Unsubscribe,
    Wanted,
    number,
    suback,
    unsuback,
)


class Due(NamedTuple):
    """Retained messages of a wish, to be looked up once a group is committed."""

    group: int
    wish: Wish
    below: int


class Subscribing:
    __slots__ = (
        "_due",
        "_hub",
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
        outbox: Outbox[Mark],
        version: int,
        outbound: Outbound,
    ) -> None:
        self._hub = hub
        self._session = session
        self._outbox = outbox
        self._version = version
        self._outbound = outbound
        self._due: deque[Due] = deque()
        self._showing: Iterator[tuple[int, Wish]] | None = None
        self.system_filters = [
            filter_ for filter_ in session.wishes if filter_.startswith(ROOT)
        ]

    @property
    def busy(self) -> bool:
        """Whether there is anything to look up, or to show."""
        return bool(self._due) or self._showing is not None

    @property
    def waits(self) -> bool:
        """Whether a commit is waited for."""
        return bool(self._due)

    def subscribe(self, packet: Subscribe, grants: Grants) -> None:
        identifier = number(packet.properties, Property.SUBSCRIPTION_IDENTIFIER) or 0
        reasons = [self._wish(one, identifier, grants) for one in packet.filters]
        self._answer(suback(self._version, packet.packet_id, reasons, {}))
        for one, reason in zip(packet.filters, reasons, strict=True):
            if reason < Reason.UNSPECIFIED_ERROR and one.filter.startswith(ROOT):
                self._show_system(one)

    def unsubscribe(self, packet: Unsubscribe) -> None:
        """End wishes; a filter that is none is refused, or the client has to go.

        UNSUBACK has no word for that before version 5, so it is a violation of the
        protocol there (3.1.1: MQTT-4.7.1-2, MQTT-4.8.0-1).
        """
        bad = {one for one in packet.filters if not _is_filter(one)}
        if bad and self._version < 5:
            text = f"UNSUBSCRIBE has {min(bad)[:80]!a}, which is no filter"
            raise Malformed(Reason.TOPIC_FILTER_INVALID, text)
        reasons = [
            Reason.TOPIC_FILTER_INVALID if one in bad else self._unwish(one)
            for one in packet.filters
        ]
        self._answer(unsuback(self._version, packet.packet_id, reasons, {}))

    def _unwish(self, filter_: str) -> Reason:
        known = self._hub.broker.sessions.unwish(self._session, filter_)
        if filter_ in self.system_filters:
            self.system_filters.remove(filter_)
        return Reason.SUCCESS if known else Reason.NO_SUBSCRIPTION_EXISTED

    def _wish(self, wanted: Wanted, identifier: int, grants: Grants) -> int:
        """Take a wish in; the reason code that says so, or why not."""
        if not _is_filter(wanted.filter):
            return Reason.TOPIC_FILTER_INVALID
        share = shared(wanted.filter)
        if matches(wanted.filter if share is None else share[1], RETAINED):
            return Reason.NOT_AUTHORIZED  # what was retained comes with its own topic
        if share is not None and wanted.no_local:  # MQTT-3.8.3-4
            raise Malformed(Reason.PROTOCOL_ERROR, "no local for a shared subscription")
        if not grants.may_subscribe(wanted.filter, subscriber_of(self._session.client)):
            return Reason.NOT_AUTHORIZED
        plain = wanted.filter if share is None else share[1]
        for one in self._hub.options.refused_filters:
            # A wider filter is granted, and does not bring what is refused: routes.py.
            if covers(one, plain) or covers(one, wanted.filter):
                return Reason.UNSPECIFIED_ERROR
        wishes = self._session.wishes
        known = wanted.filter in wishes
        if not known and len(wishes) >= self._hub.options.max_filters:
            return Reason.QUOTA_EXCEEDED
        if not known and not self._has_room():
            return Reason.QUOTA_EXCEEDED
        wish = Wish(
            wanted.filter,
            wanted.qos,
            wanted.no_local,
            wanted.retain_as_published,
            identifier,
        )
        broker = self._hub.broker
        retained = share is None and (
            wanted.retain_handling == 0 or (wanted.retain_handling == 1 and not known)
        )
        group, below = broker.promised, broker.retained.end
        broker.sessions.wish(self._session, wish)
        if wanted.filter.startswith(ROOT) and not known:
            self.system_filters.append(wanted.filter)
        if retained and below:  # MQTT-3.3.1-9 to MQTT-3.3.1-11
            self._due.append(Due(group, wish, below))
        return wanted.qos

    def _has_room(self) -> bool:
        """Whether the user may have one more."""
        try:
            self._hub.broker.accounts.subscribes()
        except QuotaReached:
            return False
        return True

    def _answer(self, data: bytes) -> None:
        if self._session.durable:
            self._outbox.after(self._hub.broker.promised, data)
        else:
            self._outbox.now(data)

    def _show_system(self, wanted: Wanted) -> None:
        writer = self._outbound.writer
        for topic, payload in self._hub.system.now(wanted.filter):
            self._outbox.now(writer.value(topic, payload, retain=True))

    # What was retained

    def retained(self, now_s: float, room: int) -> list[bytes]:
        """Retained messages of QoS 0 that may go now; others are owed from here on."""
        sent: list[bytes] = []
        while room > 0:
            if self._showing is None and not self._next():
                break
            assert self._showing is not None, "there is one now"
            found = next(self._showing, None)
            if found is None:
                self._showing = None
                continue
            data = self._outbound.show_retained(*found, now_s)
            room -= len(data)
            sent.append(data)
        if self._showing is not None:
            self._hub.broker.awake[self._session.outlet] = None
        return sent

    def _next(self) -> bool:
        """Begin with the next wish whose time has come."""
        log = self._hub.broker.log
        while self._due:
            group, wish, below = self._due[0]
            if group > log.written and log.outcome(group) == "pending":
                return False
            self._due.popleft()
            routes = self._hub.broker.sessions.routes
            kept = self._hub.broker.retained
            offsets = kept.of(wish.filter, below, left_out=routes.withholds)
            if wish.qos:
                self._owe(wish, list(offsets))
            else:
                self._showing = ((offset, wish) for offset in offsets)
                return True
        return False

    def _owe(self, wish: Wish, offsets: list[int]) -> None:
        if offsets:
            routes, session = self._hub.broker.sessions.routes, self._session
            share = routes.retained_share(session, durable=session.durable)
            for offset in offsets:
                self._outbound.owe_retained(share, offset, wish)


def _is_filter(text: str) -> bool:
    try:
        shared(text)
        check_filter(text)
    except InvalidName:
        return False
    return True
