"""Which sessions hear of which topics, and how they come by subscriptions.

A filter may match 100 000 topics, so it makes no subscription by itself. When a group
closes, every topic that got events in it is looked up among the filters, once, and
each session that asks for it and has no subscription yet gets one that begins with the
first of these events: in the same group, so a crash keeps both or neither.
A subscription that has nothing left to do may go, and comes back in the same way.

What a client was sent and did not answer stays with its share: it is in flight again
when the client comes back, under the same packet ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

from penstock.delivery.consumer import Consumer, Outlet
from penstock.delivery.cursor import NEVER
from penstock.delivery.packet_ids import MAX_ID
from penstock.delivery.subscription import Subscription
from penstock.delivery.subscriptions import Subscriptions
from penstock.log import BrokerLog
from penstock.model.policy import Policy
from penstock.model.topic_filter import matches
from penstock.sessions.filters import FilterTree
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.session import (
    NO_OUTLET,
    SHARED_NAME,
    DeliveryTerms,
    Session,
    Share,
    TopicFilter,
)

if TYPE_CHECKING:
    from penstock.sessions.book import Sessions

# The handshake of QoS 2 is with the packet ids (delivery/packet_ids.py): towards the
# subscription an event is settled once its client has it.
ANSWERED = Policy(order="log", window=MAX_ID, qos=1)
UNANSWERED = Policy(order="log", window=MAX_ID, qos=0)
BY_KEY = Policy(order="key", window=MAX_ID, qos=1)
# Topics known to need nothing, before they are all looked up again.
MAX_ROUTED = 1_000_000
# What is looked at before others have their turn: a few milliseconds.
PIECE_STEPS = 2_000
# What a filter that comes or goes takes, and a share that it is about, in such steps.
FILTER_STEPS = 10
# What it takes to make a topic.
TOPIC_STEPS = 100


_ALL: FilterTree[None, None] = FilterTree()
_ALL.add("#", None, None)


class Host(Protocol):
    """The broker that sessions belong to, as far as they need it."""

    log: BrokerLog
    subscriptions: Subscriptions

    def attach(self, subscription: Subscription, outlet: Outlet) -> Consumer: ...
    def detach(self, consumer: Consumer) -> None: ...
    def wake(self, subscription: Subscription) -> None: ...
    def dismiss(self, subscription: Subscription, reason: str) -> None: ...


class Sharers:
    """Sessions that share the events of a filter among them."""

    __slots__ = ("filter", "members", "name")

    def __init__(self, name: str, filter_: str) -> None:
        self.name = name
        self.filter = filter_
        self.members: dict[Session, TopicFilter] = {}

    @property
    def subscriber(self) -> str:
        return f"{SHARED_NAME}{self.name}/{self.filter}"


class Routes:
    def __init__(self, broker: Host, sessions: Sessions) -> None:
        self._broker = broker
        self._sessions = sessions
        self._routed: set[str] = set()
        """Topics that every session that asks for them has a share in."""
        self._tree: FilterTree[Session | Sharers, TopicFilter | None] = FilterTree()
        self._groups: dict[tuple[str, str], Sharers] = {}
        self._withheld: tuple[str, ...] = ()
        self._shared = ANSWERED
        """The rules of subscriptions that clients share."""
        self._steps = 0
        self._unfinished: dict[Session, Iterator[None]] = {}
        """Looks at shares that no client waits for."""

    @property
    def steps(self) -> int:
        """How much was looked at so far: a client that caused too much has to wait."""
        return self._steps + self._tree.steps

    @steps.setter
    def steps(self, count: int) -> None:
        self._steps = count - self._tree.steps

    def share_by_key(self, *, on: bool) -> None:
        """Whether the events of a key go to one client of a group at a time."""
        self._shared = BY_KEY if on else ANSWERED
        for one in self._broker.subscriptions:
            if one.subscriber.startswith(SHARED_NAME) and one.policy != self._shared:
                one.govern(self._shared)
                self._broker.subscriptions.update(one)

    def withhold(self, filters: Iterable[str]) -> None:
        """Let no client hear of topics that these match, whatever a filter says."""
        self._withheld = tuple(filters)
        for session in self._sessions:
            for share in list(session.shares.values()):
                if self.withholds(share.topic):
                    self.lose(session, share)
                    if not share.subscription.ended:
                        self._broker.subscriptions.remove(share.subscription)

    def withholds(self, topic: str) -> bool:
        return any(matches(one, topic) for one in self._withheld)

    # Filters

    def add(
        self, session: Session, topic_filters: Iterable[TopicFilter]
    ) -> Iterator[None]:
        """Let a session hear of what it filters, from now on.

        What it gives is to be gone through, now or in pieces: it looks at the shares
        that these filters are about.
        """
        fresh: FilterTree[None, None] = FilterTree()
        plain = []
        for topic_filter in topic_filters:
            self.steps += FILTER_STEPS
            if (share := topic_filter.share) is not None:
                self._join(session, topic_filter, share)
            else:
                fresh.add(topic_filter.filter, None, None)
                plain.append(topic_filter)
        self._unroute(topic_filter.filter for topic_filter in plain)
        starts = {
            topic: first if self._topic_filters(session, topic) else end
            for topic, first, end in self._opened(fresh)
            if topic not in session.topics
        }
        for topic_filter in plain:
            self._tree.add(topic_filter.filter, session, topic_filter)
        for topic, start in starts.items():
            self._make(session, topic, start, self.terms_of(session, topic))
        return self._look(
            session, [topic_filter.filter for topic_filter in plain], fresh
        )

    def remove(
        self, session: Session, topic_filters: Iterable[TopicFilter]
    ) -> Iterator[None]:
        """Let a session hear of them no more, unless by another filter; as ``add``."""
        gone: FilterTree[None, None] = FilterTree()
        filters = []
        for topic_filter in topic_filters:
            self.steps += FILTER_STEPS
            if (share := topic_filter.share) is not None:
                self._leave(session, share)
                continue
            self._tree.remove(topic_filter.filter, session)
            gone.add(topic_filter.filter, None, None)
            filters.append(topic_filter.filter)
        return self._look(session, filters, gone)

    def defer(self, session: Session, look: Iterator[None]) -> None:
        """Go through a piece of what was given, and leave the others to time."""
        if self._unfinished.pop(session, None) is not None:
            look = self._look(session, ["#"], _ALL)  # both, and all others
        for _ in look:
            self._unfinished[session] = look
            break

    def tick(self) -> None:
        """Go on with what was left to time, of one session after the other."""
        session = next(iter(self._unfinished), None)
        if session is not None:
            self.defer(session, self._unfinished.pop(session))

    def rest(self, session: Session, topic_filter: TopicFilter) -> None:
        """The client is not there for what is sent without an answer."""
        if topic_filter.share is None:
            self._tree.remove(topic_filter.filter, session)

    def terms(self, session: Session, share: Share) -> DeliveryTerms:
        """How events of the share's topic reach the session."""
        if share.terms is None:
            share.terms = self._terms(session, share)
        return share.terms

    def _terms(self, session: Session, share: Share) -> DeliveryTerms:
        if share.topic_filter is not None:
            return _terms([share.topic_filter])
        return self.terms_of(session, share.topic)

    def terms_of(self, session: Session, topic: str) -> DeliveryTerms:
        """How events of a topic reach a session by all its own filters."""
        return _terms(self._topic_filters(session, topic))

    def wants(self, session: Session, topic: str) -> bool:
        """Whether a session has a filter of its own for a topic."""
        return bool(self._topic_filters(session, topic))

    def _topic_filters(self, session: Session, topic: str) -> list[TopicFilter]:
        found = self._tree.match(topic)
        return [
            topic_filter
            for key, topic_filter in found
            if key is session and topic_filter
        ]

    def drop_retained(self, session: Session) -> None:
        """Send nothing more of what is retained."""
        if (share := session.topics.get(RETAINED)) is not None:
            self.drop(session, share)

    def retained_share(self, session: Session, *, durable: bool) -> Share:
        """The session's share in what is retained: nothing, but what is owed to it."""
        known = session.topics.get(RETAINED)
        if known is not None and not known.subscription.ended:
            return known
        subscription = self._broker.subscriptions.add(
            session.name,
            RETAINED,
            ANSWERED,
            NEVER,
            temporary=not durable,
            limited=False,
        )
        return self.take_up(session, subscription, None)

    def _look(
        self, session: Session, filters: list[str], about: FilterTree[None, None]
    ) -> Iterator[None]:
        """Filters came, went or changed: look at the shares that they are about.

        It counts what is there when it comes to a share, so it may wait in between.
        """
        topics = session.topics
        shares = [topics[one] for one in filters if one in topics]
        if any(map(_is_wild, filters)):
            shares = list(topics.values())
        begun = self.steps
        for share in shares:
            before = about.steps
            if topics.get(share.topic) is share and about.match(share.topic):
                self._reconsider(session, share)
            self.steps += about.steps - before
            if self.steps - begun >= PIECE_STEPS:
                yield
                begun = self.steps

    def _reconsider(self, session: Session, share: Share) -> None:
        self.steps += FILTER_STEPS + len(session.packet_ids.out) // 32
        topic_filters = self._topic_filters(session, share.topic)
        if not topic_filters:
            self.end(session, share)
            return
        share.terms = _terms(topic_filters)
        if share.ending:
            self._begin_again(share)
        self._toughen(session, share, share.terms)

    def _begin_again(self, share: Share) -> None:
        """What came while the session did not subscribe to it is not sent."""
        share.ending = False
        end = self._broker.log.topic(share.topic).next_offset
        share.subscription.fresh.seek(end)
        self._broker.subscriptions.update(share.subscription)
        if share.consumer is not None and share.consumer.ready is not None:
            share.consumer.ready[share.consumer] = None

    def _toughen(self, session: Session, share: Share, terms: DeliveryTerms) -> None:
        """A share that is subscribed to with answers now must ask for them."""
        if share.subscription.policy.qos == 0 and terms.qos:
            before = share.subscription.fresh
            self.drop(session, share)
            self._make(session, share.topic, before.cursor.start, terms)
            if (made := session.topics.get(share.topic)) is not None:
                made.subscription.fresh.take_over(before)
                self._broker.subscriptions.update(made.subscription)

    def _unroute(self, filters: Iterable[str]) -> None:
        """Topics that new filters are about may need something again."""
        for one in filters:
            if _is_wild(one):
                self._routed.clear()
                return
            self._routed.discard(one)

    def _opened(self, fresh: FilterTree[None, None]) -> Iterator[tuple[str, int, int]]:
        """Topics that new filters are about with what they have got in the open group.

        It is older than the filters, and not for them: unless another was there before.
        """
        if not len(fresh):
            return
        for topic, first in self._broker.log.touched():
            if fresh.match(topic.name):
                yield topic.name, first, topic.next_offset
        self.steps += fresh.steps

    # Topics

    def closing(self) -> None:
        """Topics have got events: see to it that every session has a subscription."""
        routed = self._routed
        if len(self._tree):
            for topic, first in self._broker.log.touched():
                if topic.name not in routed:
                    self._route(topic.name, first)

    def forget(self, topic: str | None = None) -> None:
        """A topic, or any, is gone or shorter than it was."""
        if topic is None:
            self._routed.clear()
        else:
            self._routed.discard(topic)

    def is_led(self, topic: str) -> bool:
        """Whether nothing is to be done for a topic that gets events."""
        if not len(self._tree):
            return self._broker.log.has_topic(topic)
        return topic in self._routed

    def lead(self, topic: str) -> None:
        """A topic has got events: do now what is to be done when the group closes.

        Who publishes to many new topics bears what it takes to look them up.
        """
        log = self._broker.log
        if topic in self._routed or not log.has_topic(topic):
            return
        first = log.stood_at(topic)
        if first == 0:
            self.steps += TOPIC_STEPS
        if first is not None and len(self._tree):
            self._route(topic, first)

    def _route(self, topic: str, first: int) -> None:
        wild = _is_wild(topic)  # no MQTT client can be told: MQTT-3.3.2-2
        found: dict[Session | Sharers, list[TopicFilter]] = {}
        for key, topic_filter in () if wild else self._tree.match(topic):
            topic_filters = found.setdefault(key, [])
            if topic_filter is not None:
                topic_filters.append(topic_filter)
        self.steps += FILTER_STEPS * len(found)
        for key, topic_filters in found.items():
            if isinstance(key, Sharers):
                self._make_shared(key, topic, first)
            elif (known := key.topics.get(topic)) is None or known.subscription.ended:
                self._make(key, topic, first, _terms(topic_filters))
        if len(self._routed) >= MAX_ROUTED:
            self._routed.clear()
        self._routed.add(topic)

    def _make(
        self, session: Session, topic: str, first: int, terms: DeliveryTerms
    ) -> None:
        durable = session.durable and terms.qos > 0
        if (not durable and session.outlet is None) or self.withholds(topic):
            return
        policy = ANSWERED if terms.qos else UNANSWERED
        subscription = self._broker.subscriptions.add(
            session.name, topic, policy, first, temporary=not durable, limited=False
        )
        self.take_up(session, subscription, None).terms = terms

    def _make_shared(self, group: Sharers, topic: str, first: int) -> None:
        subscriptions = self._broker.subscriptions
        if subscriptions.get(group.subscriber, topic) or self.withholds(topic):
            return
        subscription = subscriptions.add(
            group.subscriber, topic, self._shared, first, temporary=False, limited=False
        )
        for session, topic_filter in group.members.items():
            self.take_up(session, subscription, topic_filter)

    def take_up(
        self,
        session: Session,
        subscription: Subscription,
        topic_filter: TopicFilter | None,
    ) -> Share:
        """A session's share in a subscription, at work if its client is there."""
        share = Share(subscription, topic_filter)
        session.shares[subscription.number] = share
        if topic_filter is None:
            session.topics[subscription.topic] = share
        if session.outlet is not None:
            self.attach(session, share)
        return share

    def end_unsubscribed(self, session: Session) -> None:
        """End what was ending when the broker ended: no filter is left for it."""
        filters: FilterTree[None, None] = FilterTree()
        for topic_filter in session.topic_filters.values():
            if not topic_filter.share:
                filters.add(topic_filter.filter, None, None)
        for share in list(session.topics.values()):
            if share.topic != RETAINED and not filters.match(share.topic):
                self.end(session, share)

    def _join(
        self, session: Session, topic_filter: TopicFilter, share: tuple[str, str]
    ) -> None:
        group = self._groups.get(share)
        if group is None:
            group = self._groups[share] = Sharers(*share)
            self._tree.add(group.filter, group, None)
            self._unroute([group.filter])
            fresh: FilterTree[None, None] = FilterTree()
            fresh.add(group.filter, None, None)
            for topic, _, end in list(self._opened(fresh)):
                self._make_shared(group, topic, end)
        group.members[session] = topic_filter
        for subscription in self.shared_subscriptions(group):
            known = session.shares.get(subscription.number)
            if known is None:
                self.take_up(session, subscription, topic_filter)
                continue
            known.topic_filter, known.terms, known.ending = topic_filter, None, False
            if known.consumer is not None and session.outlet is not None:
                session.ready[known.consumer] = None

    def _leave(self, session: Session, share: tuple[str, str]) -> None:
        group = self._groups.get(share)
        if group is None or group.members.pop(session, None) is None:
            return
        for subscription in list(self.shared_subscriptions(group)):
            if (one := session.shares.get(subscription.number)) is not None:
                self.end(session, one)
        if not group.members:
            del self._groups[share]
            self._tree.remove(group.filter, group)
            for subscription in self.shared_subscriptions(group):
                self._broker.dismiss(subscription, "its group has no member left")
                self._broker.subscriptions.remove(subscription)

    def shared_subscriptions(self, group: Sharers) -> Iterable[Subscription]:
        return self._broker.subscriptions.of_subscriber(group.subscriber)

    def subscribers(self) -> set[str]:
        """The names of groups that have members."""
        return {group.subscriber for group in self._groups.values()}

    # Shares: at work while the client is there, then at rest

    def attach(
        self, session: Session, share: Share, offsets: Iterable[int] = ()
    ) -> None:
        """The client is there; ``offsets`` were sent to it and not answered."""
        assert session.outlet is not None, "its client is connected"
        if share.subscription.ended:  # its topic has gone meanwhile
            self.lose(session, share)
            return
        if share.consumer is None:
            share.consumer = self._broker.attach(share.subscription, session.outlet)
        else:  # it kept what only this client may have
            share.consumer.outlet = session.outlet
            share.consumer.come_back()
        share.consumer.ready = session.ready
        share.subscription.hold(offsets, share.consumer)
        session.ready[share.consumer] = None

    def keep_begun(self, session: Session, share: Share) -> None:
        """What was begun with QoS 2 of a shared subscription is for this client only.

        It is completed with it, or not at all (MQTT-4.8.2-4); anything else may go to
        others.
        """
        number = share.subscription.number
        session.packet_ids.drop(number, qos=1)
        packet_ids = session.packet_ids.out
        begun = [packet_ids[id_].offset for id_ in session.packet_ids.of(number)]
        if begun:
            share.consumer = self._broker.attach(share.subscription, NO_OUTLET)
            share.subscription.hold(begun, share.consumer)
            share.consumer.go_away()

    def detach(self, session: Session, share: Share) -> None:
        """The client has gone."""
        consumer = share.consumer
        if consumer is None:
            return
        session.ready.pop(consumer, None)
        if share.topic_filter is not None:
            # As keep_begun has it.
            others = session.packet_ids.drop(share.subscription.number, qos=1)
            share.subscription.put_back(others, consumer)
            if share.subscription.owed.count_of(consumer):
                consumer.outlet = NO_OUTLET
                consumer.go_away()
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
        session.packet_ids.abandon(session.packet_ids.of(share.subscription.number))
        self._sessions.note(session)
        self._forget(session, share)

    def end(self, session: Session, share: Share) -> None:
        """Send nothing more of it; what is in flight is completed (MQTT-3.10.4-3)."""
        number = share.subscription.number
        if any(one.number == number for one in session.packet_ids.out.values()):
            share.ending = True
        else:
            self.drop(session, share)

    def drop(self, session: Session, share: Share) -> None:
        """Forget a share; and its subscription, if no other client has a part in it."""
        consumer, share.consumer = share.consumer, None
        if consumer is not None:
            session.ready.pop(consumer, None)
            if (
                share.topic_filter is not None
            ):  # not to be sent to another client: MQTT-4.8.2-5
                offsets = session.packet_ids.drop(share.subscription.number, qos=2)
                share.subscription.settle_all(offsets, consumer)
            self._broker.detach(consumer)
        session.packet_ids.drop(share.subscription.number)
        self._forget(session, share)
        subscription = share.subscription
        if share.topic_filter is None and not subscription.ended:
            self._broker.subscriptions.remove(subscription)
            self._routed.discard(subscription.topic)
        elif share.topic_filter is not None:
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


def _is_wild(text: str) -> bool:
    return "+" in text or "#" in text


def _terms(topic_filters: list[TopicFilter]) -> DeliveryTerms:
    return DeliveryTerms(
        max((topic_filter.qos for topic_filter in topic_filters), default=0),
        bool(topic_filters)
        and all(topic_filter.no_local for topic_filter in topic_filters),
        any(topic_filter.retain_as_published for topic_filter in topic_filters),
        tuple(
            sorted(
                topic_filter.identifier
                for topic_filter in topic_filters
                if topic_filter.identifier
            )
        ),
    )
