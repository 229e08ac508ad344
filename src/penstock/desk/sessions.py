"""The desk's MQTT sessions: who has one, what is owed to it, and its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import nlargest, nsmallest
from itertools import islice

from msgspec.structs import asdict

from penstock.broker.broker import Broker
from penstock.desk.arguments import Limit
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.sessions import (
    FilterRow,
    MqttSessionPage,
    MqttSessionRow,
    MqttSessionView,
    OwedTopicRow,
    SessionState,
    WillRow,
)
from penstock.errors import UnknownSession
from penstock.model.topic_filter import check_filter, overlap
from penstock.sessions import Session, Share, TopicFilter
from penstock.sessions.session import SessionHolder

# Filters of a session that a list shows; the session itself shows all.
SHOWN_FILTERS = 10
# Topics of sessions that one answer adds up: the broker waits meanwhile.
MAX_TOPICS = 20_000


class SessionDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("mqtt.sessions")
    def sessions(
        self,
        *,
        after: str = "",
        matching: str | None = None,
        state: SessionState | None = None,
        limit: Limit = MAX_ROWS,
    ) -> MqttSessionPage:
        """Sessions by client, behind ``after``.

        ``matching``: only those subscribed to something of this topic filter. There
        may be fewer than ``limit`` though there are more. Raises InvalidName.
        """
        if matching is not None:
            check_filter(matching)
        found = [
            one.client
            for one in self._broker.sessions
            if one.client > after
            and state in (None, _state(one))
            and (matching is None or _filters_for(one, matching))
        ]
        rows: list[MqttSessionRow] = []
        topics = 0
        for client in nsmallest(limit, found):
            session = self._session(client)
            topics += len(session.topics)
            if rows and topics > MAX_TOPICS:
                break
            rows.append(self._row(session))
        return MqttSessionPage(sessions=rows, more=len(found) > len(rows))

    @verb("mqtt.sessions.show")
    def session(self, *, client: str, limit: Limit = MAX_ROWS) -> MqttSessionView:
        """One session with its filters, topics and will; raises UnknownSession."""
        session = self._session(client)
        shares = [one for one in session.shares.values() if _lag(one)]
        flying = Counter(
            in_flight.number for in_flight in session.packet_ids.out.values()
        )
        most = nlargest(limit, shares, key=_lag)
        row = asdict(self._row(session))
        row["filters"] = _topic_filters(session, limit)
        return MqttSessionView(
            **row,
            topics=[_owed(one, flying[one.subscription.number]) for one in most],
            more_topics=len(shares) > limit,
            will=_will(session),
        )

    @verb("mqtt.sessions.end", Promise.KEPT)
    def end(self, *, client: str) -> MqttSessionRow:
        """End a session with all that is owed to it, and its connection; as it was.

        A will is published, by the server when it next looks if the client is away.
        Raises UnknownSession.
        """
        session, sessions = self._session(client), self._broker.sessions
        row = self._row(session)
        session.expiry_s = 0.0
        if isinstance(session.outlet, SessionHolder):
            session.outlet.sent_away(self._now_s())
        elif session.will is not None:
            sessions.changed(session)
        else:
            sessions.end(session)
        return row

    def _session(self, client: str) -> Session:
        found = self._broker.sessions.get(client)
        if found is None:
            raise UnknownSession(client)
        return found

    def _now_s(self) -> float:
        return self._broker.log.now_ms() / 1000

    def _row(self, session: Session) -> MqttSessionRow:
        lags = [_lag(share) for share in session.topics.values()]
        since_s, left_s = session.since_s, None
        if session.outlet is None and session.gone_s is not None:
            since_s = session.gone_s
            if session.expiry_s is not None:
                left_s = max(since_s + session.expiry_s - self._now_s(), 0.0)
        return MqttSessionRow(
            client=session.client,
            user=session.user,
            state=_state(session),
            since_ms=_ms(since_s),
            expiry_s=session.expiry_s,
            expires_in_s=left_s,
            durable=session.durable,
            filters=_topic_filters(session, SHOWN_FILTERS),
            filters_count=len(session.topic_filters),
            in_flight_out=len(session.packet_ids),
            in_flight_in=len(session.packet_ids.received),
            owed_topics=sum(1 for lag in lags if lag),
            lag=sum(lags),
        )


def _state(session: Session) -> SessionState:
    return "away" if session.outlet is None else "connected"


def _filters_for(session: Session, matching: str) -> bool:
    return any(
        overlap(topic_filter.plain, matching)
        for topic_filter in session.topic_filters.values()
    )


def _topic_filters(session: Session, limit: int) -> list[FilterRow]:
    topic_filters: Iterable[TopicFilter] = islice(session.topic_filters.values(), limit)
    return [
        FilterRow(
            filter=topic_filter.filter,
            qos=topic_filter.qos,
            no_local=topic_filter.no_local,
            retain_as_published=topic_filter.retain_as_published,
            identifier=topic_filter.identifier,
        )
        for topic_filter in topic_filters
    ]


def _lag(share: Share) -> int:
    """Nothing, if the topic is gone."""
    return 0 if share.subscription.ended else share.subscription.lag()


def _owed(share: Share, in_flight: int) -> OwedTopicRow:
    found = None if share.topic_filter is None else share.topic_filter.share
    return OwedTopicRow(
        topic=share.topic,
        group=None if found is None else found[0],
        in_flight=in_flight,
        lag=_lag(share),
    )


def _will(session: Session) -> WillRow | None:
    will = session.will
    if will is None:
        return None
    return WillRow(
        topic=will.topic,
        bytes=len(will.payload),
        qos=will.qos,
        retain=will.retain,
        delay_s=will.delay_s,
        due_ms=_ms(session.will_due_s),
    )


def _ms(moment_s: float | None) -> int | None:
    return None if moment_s is None else int(moment_s * 1000)
