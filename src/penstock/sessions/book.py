"""All sessions of a broker, and how the journal keeps them.

A record holds sessions as they are (new ones, those whose filters changed, and all of
them after a failed commit), the trails of packet ids of others, and the numbers of
those that are gone. Sessions that end with their connection are not in it.

Crash promise: precious. Replayed from the journal, carried by every checkpoint. Acks of
QoS 1 wait for the next commit; what a client was promised, and what is sent with QoS 2,
does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from penstock.delivery.consumer import Outlet
from penstock.delivery.kept import Kept
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.log import Record
from penstock.sessions.routes import Host, Routes
from penstock.sessions.session import (
    NAME,
    SHARED_NAME,
    WILL_RETRY_S,
    Session,
    TopicFilter,
    Will,
)


class SessionRecord(msgspec.Struct, array_like=True, frozen=True):
    """A session with everything that is kept of it."""

    number: int
    client: str
    user: str
    expiry_s: float | None
    gone_s: float | None
    topic_filters: list[TopicFilter]
    will: Will | None
    trail: bytes


class SessionChanges(msgspec.Struct, array_like=True, frozen=True):
    full: list[SessionRecord] = []
    trails: list[tuple[int, bytes]] = []
    gone: list[int] = []
    whole: bool = False
    """Whether ``full`` is all there is: others are gone."""
    topic_filters: list[tuple[int, str, TopicFilter | None]] = []
    """Number, filter and filter of those that came, changed or went, in order."""


class Willed(NamedTuple):
    """A will that is published in a group, and may be taken back with it."""

    session: Session
    will: Will


class TakenIds(msgspec.Struct, frozen=True):
    """Ids of a client that were received, or completed, and may be taken back."""

    session: Session
    ids: list[int]
    completed: bool


_encode = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(SessionChanges).decode
_decode_snapshot = msgspec.msgpack.Decoder(tuple[int, list[SessionRecord]]).decode


class Sessions(Kept):
    """Owner of the sessions' records."""

    kind = 264

    routes: Routes

    def __init__(self) -> None:
        self._next_number = 0
        self._by_client: dict[str, Session] = {}
        self._by_number: dict[int, Session] = {}
        self._dirty: dict[Session, None] = {}
        self._unsaid: dict[Session, None] = {}
        self._gone: list[int] = []
        self._whole = False
        self._urgent = False
        self._topic_filters: list[tuple[int, str, TopicFilter | None]] = []
        self._taken: Unconfirmed[TakenIds] = Unconfirmed()
        self._willed: Unconfirmed[Willed] = Unconfirmed()
        self.unpublished: list[Willed] = []
        """Wills that wait for the log, and that no session carries any more."""
        self._offline: dict[Session, None] = {}
        self.filters: Counter[str] = Counter()
        """How many filters the sessions of each user have, once they are wired."""
        self._broker: Host
        self.began_ms = 0
        """When the broker began."""

    def wire(self, broker: Host, now_s: float) -> None:
        """Find the subscriptions of what the journal has told of."""
        self._broker, self.routes = broker, Routes(broker, self)
        self.began_ms = round(now_s * 1000)
        for session in self._by_client.values():
            self._take_up(session, now_s)
        known, groups = self._by_client, self.routes.subscribers()
        for one in list(broker.subscriptions):
            name = one.subscriber
            lost = name.startswith(NAME) and name[len(NAME) :] not in known
            if lost or (name.startswith(SHARED_NAME) and name not in groups):
                broker.subscriptions.remove(one)

    def _take_up(self, session: Session, now_s: float) -> None:
        self._count(session, len(session.topic_filters))
        session.gone_s = now_s if session.gone_s is None else session.gone_s
        if session.will is not None:
            session.will_due_s = session.gone_s + session.will.delay_s
        self._offline[session] = None
        for one in self._broker.subscriptions.of_subscriber(session.name):
            share = self.routes.take_up(session, one, None)
            share.quiet = self._broker.log.topic(one.topic).next_offset
        topic_filters = session.topic_filters.values()
        for _ in self.routes.add(
            session, [w for w in topic_filters if w.qos or w.share]
        ):
            pass
        packet_ids = session.packet_ids
        shares = session.shares
        packet_ids.abandon(
            [i for i, f in packet_ids.out.items() if f.number not in shares]
        )
        self.routes.end_unsubscribed(session)
        for share in list(shares.values()):
            if share.topic_filter is not None:
                self.routes.keep_begun(session, share)

    def __len__(self) -> int:
        return len(self._by_client)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_client.values())

    def get(self, client: str) -> Session | None:
        return self._by_client.get(client)

    @property
    def offline(self) -> Iterable[Session]:
        """Sessions whose client is away, those that went first in front."""
        return list(self._offline)

    # What clients do

    def open(
        self, client: str, *, clean: bool, expiry_s: float | None
    ) -> tuple[Session, bool]:
        """The session of a client that connects, and whether it was there."""
        session = self._by_client.get(client)
        if session is not None and clean:
            self.end(session)
            session = None
        present = session is not None
        if session is None:
            self._next_number += 1
            durable = expiry_s is None or expiry_s > 0
            session = Session(self._next_number, client, durable=durable)
            self._by_client[client] = self._by_number[session.number] = session
        session.expiry_s = expiry_s
        self.changed(session)
        return session, present

    def attach(self, session: Session, outlet: Outlet) -> None:
        """The client is connected."""
        session.outlet = outlet
        session.since_s = self._broker.log.now_ms() / 1000
        session.gone_s = session.will_due_s = None
        self._offline.pop(session, None)
        sent: dict[int, list[int]] = {}
        for in_flight in session.packet_ids.out.values():
            sent.setdefault(in_flight.number, []).append(in_flight.offset)
        for number, share in list(session.shares.items()):
            self.routes.attach(session, share, sent.get(number, ()))
        topic_filters = session.topic_filters.values()
        back = [one for one in topic_filters if not one.qos and one.share is None]
        self.routes.defer(session, self.routes.add(session, back))

    def detach(self, session: Session, now_s: float) -> None:
        """The connection is gone; the session stays as long as it may."""
        session.outlet = None
        session.gone_s = now_s
        if session.will is not None:
            session.will_due_s = now_s + session.will.delay_s
        self._offline[session] = None
        for topic_filter in session.topic_filters.values():
            if not topic_filter.qos and topic_filter.share is None:
                self.routes.rest(session, topic_filter)
        for share in list(session.shares.values()):
            self.routes.detach(session, share)
        session.ready.clear()
        self.changed(session, urgent=False)

    def subscribe(self, session: Session, topic_filter: TopicFilter) -> bool:
        """Let a session hear of a filter; whether it did before."""
        known = topic_filter.filter in session.topic_filters
        for _ in self.subscribe_all(session, [topic_filter]):
            pass
        return known

    def unsubscribe(self, session: Session, filter_: str) -> bool:
        """End a filter; whether there was one."""
        known = filter_ in session.topic_filters
        for _ in self.unsubscribe_all(session, [filter_]):
            pass
        return known

    def subscribe_all(
        self, session: Session, topic_filters: Iterable[TopicFilter]
    ) -> Iterator[None]:
        """Let a session hear of filters; to be gone through, see Routes.add."""
        changed = [
            one for one in topic_filters if session.topic_filters.get(one.filter) != one
        ]
        before = len(session.topic_filters)
        for topic_filter in changed:
            session.topic_filters[topic_filter.filter] = topic_filter
            self._wanted_by(session, topic_filter.filter, topic_filter)
        self._count(session, len(session.topic_filters) - before)
        return self.routes.add(session, changed)

    def unsubscribe_all(
        self, session: Session, filters: Iterable[str]
    ) -> Iterator[None]:
        """End filters, as far as there are any; to be gone through as well."""
        gone = []
        for filter_ in filters:
            if (topic_filter := session.topic_filters.pop(filter_, None)) is not None:
                gone.append(topic_filter)
                self._wanted_by(session, filter_, None)
        self._count(session, -len(gone))
        return self.routes.remove(session, gone)

    def _count(self, session: Session, more: int) -> None:
        if session.user and more:
            self.filters[session.user] += more
            if not self.filters[session.user]:
                del self.filters[session.user]

    def _wanted_by(
        self, session: Session, filter_: str, topic_filter: TopicFilter | None
    ) -> None:
        if session.durable and session.number in self._by_number:
            self._topic_filters.append((session.number, filter_, topic_filter))
            self._urgent = True

    def end(self, session: Session) -> None:
        """Forget a session with all that is owed to it."""
        topic_filters, session.topic_filters = session.topic_filters, {}
        self._count(session, -len(topic_filters))
        for share in list(session.shares.values()):
            self.routes.drop(session, share)
        for _ in self.routes.remove(session, topic_filters.values()):
            pass
        del self._by_client[session.client], self._by_number[session.number]
        self._offline.pop(session, None)
        self._unsaid.pop(session, None)
        self._dirty.pop(session, None)
        if session.durable:
            self._gone.append(session.number)

    def publishing(self, willed: Willed) -> None:
        """A will is published in this group; if its commit fails, it comes back."""
        self._willed.add(willed)

    def _bring_back(self, willed: Willed) -> None:
        """Have a will whose commit failed published again.

        Its session carries it, so that a crash does not lose it: if need be one that
        had just ended. If the client is back, it has a will of its own by now.
        """
        session, will = willed
        holder = self._by_client.get(session.client, session)
        if not session.durable or holder is not session or session.gone_s is None:
            self.unpublished.append(willed)
            return
        if session.number not in self._by_number:
            session.expiry_s = 0.0  # it is there for its will alone
        self._by_client[session.client] = self._by_number[session.number] = session
        self._offline[session] = None
        session.will, session.will_due_s = will, session.gone_s
        session.will_again_s = self._broker.log.now_ms() / 1000 + WILL_RETRY_S

    def received(self, session: Session, ids: list[int]) -> None:
        """Messages of QoS 2 are stored in this group under these ids."""
        session.packet_ids.receive(ids)
        self._taken.add(TakenIds(session, ids, completed=False))
        self.note(session, urgent=True)

    def completed(self, session: Session, ids: Iterable[int]) -> list[int]:
        """Their PUBRELs have come; those that were known."""
        known = session.packet_ids.complete(ids)
        if known and session.durable:  # others are told at once
            self._taken.add(TakenIds(session, known, completed=True))
            self.note(session, urgent=True)
        return known

    def note(self, session: Session, *, urgent: bool = False) -> None:
        """The packet ids of a session have moved."""
        if session.durable:
            self._dirty[session] = None
            self._urgent = self._urgent or urgent

    def changed(self, session: Session, *, urgent: bool = True) -> None:
        """Have everything about a session written, soon if a client waits for it."""
        if session.durable and session.number in self._by_number:
            self._unsaid[session] = None
            self._urgent = self._urgent or urgent

    def shift(self, seconds: float) -> None:
        """The clock was set: what was to end in a while still is."""
        for session in self._offline:
            if session.gone_s is not None:
                session.gone_s += seconds
            if session.will_due_s is not None:
                session.will_due_s += seconds
            session.will_again_s += seconds

    # The journal's side

    def closing(self) -> None:
        """Called for every group that closes, before the records are collected."""
        self.routes.closing()

    def forget(self, topic: str) -> None:
        self.routes.forget(topic)

    @property
    def urgent(self) -> bool:
        """Whether anything waits that was promised to a client."""
        return self._urgent or bool(self._gone) or self._whole

    @property
    def dirty(self) -> bool:
        """Whether anything waits to be written."""
        return bool(self._dirty or self._unsaid) or self.urgent

    def confirmed(self) -> None:
        """What the committed group changed stays so."""
        self._taken.confirm()
        self._willed.confirm()

    def collect(self) -> list[tuple[bytes, bool]]:
        self._taken.close()
        self._willed.close()
        if not self.dirty:
            return []
        sync = self.urgent
        full = [_row(session) for session in self._unsaid]
        for session in self._unsaid:
            session.packet_ids.said()
        trails = [
            (session.number, session.packet_ids.said())
            for session in self._dirty
            if session not in self._unsaid
        ]
        said = {session.number for session in self._unsaid}
        topic_filters = [one for one in self._topic_filters if one[0] not in said]
        data = _encode(
            SessionChanges(full, trails, self._gone, self._whole, topic_filters)
        )
        self._dirty.clear()
        self._unsaid.clear()
        self._gone, self._topic_filters = [], []
        self._whole = self._urgent = False
        return [(data, sync)]

    def taken_back(self) -> None:
        """Undo what was received, and say everything else again."""
        for taken in self._taken.take_back():
            received = taken.session.packet_ids.received
            if taken.completed:
                received.update(taken.ids)
            else:
                received.difference_update(taken.ids)
        for willed in reversed(self._willed.take_back()):
            self._bring_back(willed)
        self._unsaid = {one: None for one in self if one.durable}
        self._whole = True
        self.routes.forget()

    def snapshot(self) -> bytes:
        rows = [_row(session) for session in self if session.durable]
        return _encode((self._next_number, rows))

    def restore(self, snapshot: bytes) -> None:
        self._next_number, rows = _decode_snapshot(snapshot)
        for row in rows:
            self._put(row)

    def replay(self, record: Record) -> None:
        changes = _decode_changes(record.data)
        if changes.whole:
            self._by_client.clear()
            self._by_number.clear()
        for number in changes.gone:
            self._remove(number)
        for row in changes.full:
            self._remove(row.number)
            self._put(row)
        for number, filter_, topic_filter in changes.topic_filters:
            if (session := self._by_number.get(number)) is not None:
                session.topic_filters.pop(filter_, None)
                if topic_filter is not None:
                    session.topic_filters[filter_] = topic_filter
        for number, trail in changes.trails:
            self._by_number[number].packet_ids.follow(trail)

    def _remove(self, number: int) -> None:
        known = self._by_number.pop(number, None)
        if known is not None and self._by_client.get(known.client) is known:
            del self._by_client[known.client]

    def _put(self, row: SessionRecord) -> None:
        self._next_number = max(self._next_number, row.number)
        session = Session(row.number, row.client, durable=True)
        session.user, session.expiry_s = row.user, row.expiry_s
        session.gone_s, session.will = row.gone_s, row.will
        session.topic_filters = {
            topic_filter.filter: topic_filter for topic_filter in row.topic_filters
        }
        session.packet_ids.follow(row.trail)
        self._by_client[session.client] = self._by_number[row.number] = session


def _row(session: Session) -> SessionRecord:
    return SessionRecord(
        session.number,
        session.client,
        session.user,
        session.expiry_s,
        session.gone_s,
        list(session.topic_filters.values()),
        session.will,
        session.packet_ids.whole_trail(),
    )
