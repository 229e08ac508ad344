"""A session's shares in topics: at work while its client is there, then at rest.

What a client was sent and did not answer stays with it: it is in flight again when the
client comes back, under the same packet ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from penstock.delivery.consumer import Consumer, Outlet
from penstock.delivery.subscription import Subscription
from penstock.delivery.subscriptions import Subscriptions
from penstock.log import BrokerLog
from penstock.sessions.session import NOBODY, Session, Share

if TYPE_CHECKING:
    from penstock.sessions.book import Sessions


class Host(Protocol):
    """The broker that sessions belong to, as far as they need it."""

    log: BrokerLog
    subscriptions: Subscriptions

    def attach(self, subscription: Subscription, outlet: Outlet) -> Consumer: ...
    def detach(self, consumer: Consumer) -> None: ...
    def wake(self, subscription: Subscription) -> None: ...
    def dismiss(self, subscription: Subscription, reason: str) -> None: ...


class Shares:
    def __init__(self, broker: Host, sessions: Sessions) -> None:
        self._broker = broker
        self._sessions = sessions
        self._routed: set[str] = set()
        """Topics that everybody who wishes for them has a share in."""

    def attach(
        self, session: Session, share: Share, offsets: Iterable[int] = ()
    ) -> None:
        """The client is there; ``offsets`` were sent to it and not answered."""
        assert session.outlet is not None, "somebody is there"
        if share.subscription.ended:  # its topic has gone meanwhile
            self.lose(session, share)
            return
        if share.consumer is None:
            share.consumer = self._broker.attach(share.subscription, session.outlet)
        else:  # it kept what only this client may have
            share.consumer.outlet = session.outlet
        share.consumer.ready = session.ready
        share.subscription.hold(offsets, share.consumer)
        session.ready[share.consumer] = None

    def keep_begun(self, session: Session, share: Share) -> None:
        """What was begun with QoS 2 of a shared subscription is for this client only.

        It is completed with it, or not at all (MQTT-4.8.2-4); anything else may go to
        others.
        """
        number = share.subscription.number
        session.flights.drop(number, qos=1)
        flights = session.flights.out
        begun = [flights[id_].offset for id_ in session.flights.of(number)]
        if begun:
            share.consumer = self._broker.attach(share.subscription, NOBODY)
            share.subscription.hold(begun, share.consumer)

    def detach(self, session: Session, share: Share) -> None:
        """The client has gone."""
        consumer = share.consumer
        if consumer is None:
            return
        session.ready.pop(consumer, None)
        if share.wish is not None:
            # As keep_begun has it.
            others = session.flights.drop(share.subscription.number, qos=1)
            share.subscription.put_back(others, consumer)
            if share.subscription.owed.count_of(consumer):
                consumer.outlet = NOBODY
                self._broker.wake(share.subscription)
                return
        share.consumer = None
        self._broker.detach(consumer)
        if share.subscription.temporary:
            self._forget(session, share)
        else:
            self._broker.wake(share.subscription)

    def lose(self, session: Session, share: Share) -> None:
        """The topic is gone, and the subscription with it, or about to be."""
        if share.consumer is not None:
            session.ready.pop(share.consumer, None)
            share.consumer = None
        session.flights.abandon(session.flights.of(share.subscription.number))
        self._sessions.note(session)
        self._forget(session, share)

    def end(self, session: Session, share: Share) -> None:
        """Send nothing more of it; what is in flight is completed (MQTT-3.10.4-3)."""
        number = share.subscription.number
        if any(one.number == number for one in session.flights.out.values()):
            share.ending = True
        else:
            self.drop(session, share)

    def drop(self, session: Session, share: Share) -> None:
        """Forget a share; and its subscription, if nobody else has a part in it."""
        consumer, share.consumer = share.consumer, None
        if consumer is not None:
            session.ready.pop(consumer, None)
            if share.wish is not None:  # not to be sent to anybody else: MQTT-4.8.2-5
                offsets = session.flights.drop(share.subscription.number, qos=2)
                share.subscription.settle_all(offsets, consumer)
            self._broker.detach(consumer)
        session.flights.drop(share.subscription.number)
        self._forget(session, share)
        subscription = share.subscription
        if share.wish is None and not subscription.ended:
            self._broker.subscriptions.remove(subscription)
            self._routed.discard(subscription.topic)
        elif share.wish is not None:
            self._broker.wake(subscription)

    def _forget(self, session: Session, share: Share) -> None:
        session.shares.pop(share.subscription.number, None)
        if session.topics.get(share.topic) is share:
            del session.topics[share.topic]
            self._routed.discard(share.topic)

    def sweep(self, session: Session) -> int:
        """Forget shares that have nothing left to do; how many those were."""
        log = self._broker.log
        idle = [
            share
            for share in session.topics.values()
            if not share.ending
            and log.has_topic(share.topic)
            and not share.subscription.ended
            and share.subscription.drained
            # Nothing is on its way to be committed.
            and log.topic(share.topic).next_offset == share.subscription.cursor.end()
        ]
        for share in idle:
            self.drop(session, share)
        return len(idle)
