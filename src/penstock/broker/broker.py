"""The broker: topics, publishers and subscriptions over one log, and their deadlines.

Synchronous, single-threaded, deterministic: time comes in as ``now_s``, and what is
ready to go out is pulled. A caller that was promised something waits for the group
that holds it (``group`` at the moment of the call): when the log has ended that group's
commit, ``outcome`` says what became of it. Gateways put themselves into ``waiting`` for
that, and find themselves in ``awake`` whenever there may be something to send.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Self

from penstock.access.accounts import Accounts
from penstock.broker.failure_handling import FailureHandling
from penstock.broker.gathering import Gathering
from penstock.broker.log_throttle import LogThrottle
from penstock.broker.names import accepted_topic, check_plain
from penstock.broker.options import BrokerOptions
from penstock.broker.publishing import (
    Accepted,
    PublishTerms,
    StoredPiece,
    accept,
    publish_once,
    release,
)
from penstock.broker.publishing_rows import RowsTerms, accept_rows, places_of
from penstock.broker.sinks import Sinks
from penstock.broker.starts import check_resumed, resolved
from penstock.broker.timers import Timers
from penstock.broker.topic_registry import TopicRegistry
from penstock.broker.traffic import Traffic
from penstock.chains import Chains
from penstock.delivery import letters
from penstock.delivery.consumer import Consumer, Outlet
from penstock.delivery.dedup import Dedup
from penstock.delivery.delays import Delays
from penstock.delivery.handshake import Reply
from penstock.delivery.kept import Kept, KeptKinds
from penstock.delivery.level_book import LevelBook
from penstock.delivery.owed import Owed, Portion
from penstock.delivery.pages import Pages
from penstock.delivery.pending import Pending, PendingMessage
from penstock.delivery.states import RELEASED, OwedState
from penstock.delivery.subscription import Subscription
from penstock.delivery.subscriptions import Subscriptions
from penstock.errors import (
    BeingDeleted,
    LimitReached,
    UnknownSubscription,
    UnknownTopic,
)
from penstock.log import (
    Appended,
    AppendedRows,
    Batch,
    Columns,
    CommittedFrame,
    GroupCommit,
    OpenLog,
    SharedRows,
    TopicOptions,
)
from penstock.model.failure import Failure
from penstock.model.policy import Policy
from penstock.sessions import Sessions
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.retained import Retained

logger = logging.getLogger(__name__)


class Broker:
    def __init__(
        self,
        open_log: OpenLog,
        options: BrokerOptions | None = None,
        topic_options: TopicOptions | None = None,
        kept: Iterable[Kept] = (),
    ) -> None:
        """``kept``: kinds of state that others have brought, and that its log keeps."""
        self.options = options or BrokerOptions()
        self.topic_options = topic_options or TopicOptions()
        self.letter_options = self._bounded_options(self.topic_options)
        self._bounded: set[str] = set()
        """Topics that are made with these options too."""
        self._kept = KeptKinds()
        keep, given = self._kept.keep, self.options
        self.subscriptions = keep(Subscriptions(given.max_subscriptions))
        self.pending = keep(Pending(given.max_pending, given.max_pending_bytes))
        self.dedup = keep(Dedup(given.dedup_count, given.dedup_age_s))
        self.letters = keep(letters.Letters())
        self.levels = keep(LevelBook())
        self.delays = keep(Delays())
        self.registry = keep(TopicRegistry(given))
        self.sinks = keep(Sinks(given))
        self.sessions = keep(Sessions())
        for one in kept:
            keep(one)
        self.unconfirmed_letters = letters.UnconfirmedLetters()
        self.unconfirmed_redrives = letters.UnconfirmedRedrives()
        send = partial(self.unconfirmed_redrives.confirmed, wake=self.wake)
        self._kept.follow(
            self.unconfirmed_letters.confirmed, self.unconfirmed_letters.taken_back
        )
        self._kept.follow(send, self.unconfirmed_redrives.taken_back)
        self.awake: dict[object, None] = {}
        self.waiting: dict[object, None] = {}
        self.timers = Timers()
        self.throttle = LogThrottle()
        """Where clients can have something said: they do not fill the log."""
        self._deleted: list[str] = []
        """Topics that went with the group whose commit has just ended."""
        self.log = open_log(owners=self._kept.kinds)
        subscribed = self.subscriptions.owners, self.sessions.filters
        self.accounts = Accounts(self.log, self.registry, subscribed)
        self.pages = Pages(self.log, self.options.page_cache_bytes)
        self.traffic = Traffic(self.log.now_ms() / 1000)
        self.log.on_commit = self._on_commit
        self.gathering = Gathering(self)
        self.log.on_close = self._closing
        self.chains = Chains(self.log)
        self.failure_handling = FailureHandling(self)
        self._drop_orphans()
        self._bound(letters.TOPIC)
        self.delays.wire(self.log)
        self.levels.wire(self.log, self.pages, self.delays.committed)
        self.subscriptions.wire(self.pages, self.levels.get, self.delays.mark)
        self.retained = Retained(self.log, self.options.max_retained)
        self.sessions.wire(self, self.log.now_ms() / 1000)
        self._kept.opened(self.log)
        self.failure_handling.recover()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.throttle.close()
        self.chains.close()
        self.log.close()

    # Committing

    @property
    def group(self) -> int:
        """The group that will hold what is done now."""
        return self.log.open_group

    @property
    def promised(self) -> int:
        """The group that holds all that was promised so far."""
        return self.log.open_group if self._promises else self.log.open_group - 1

    @property
    def urgent(self) -> bool:
        """Whether a commit is waited for."""
        return bool(self.gathering) or self._promises

    @property
    def _promises(self) -> bool:
        """Whether the open group has anything that was promised."""
        if self.log.pending_bytes > 0:
            return True
        for one in self._kept.urgent:  # noqa: SIM110 - any() costs more, every turn
            if one.urgent:
                return True
        return False

    @property
    def dirty(self) -> bool:
        """Whether there is anything a commit would write."""
        return self.urgent or self._kept.dirty

    def _closing(self) -> None:
        """The open group is about to close."""
        self.gathering.store()
        self.sessions.closing()

    def _on_commit(self, commit: GroupCommit) -> None:
        if commit.error is not None:
            self.gathering.lose(commit.number)
        self.awake.update(self.waiting)
        self.waiting.clear()
        self.traffic.committed(commit)
        if commit.error is not None:
            self._after_failure()
            return
        self._kept.confirmed(commit.number)
        # In their order: a topic may have both, and its indexes take what follows.
        for one in commit.contents():
            if isinstance(one, CommittedFrame):
                self._on_frame(one)
            else:
                self._on_rows(one)
        while self._deleted:
            self._forget_topic(self._deleted.pop())

    def _on_frame(self, committed: CommittedFrame) -> None:
        """Events of one topic are committed."""
        topic, name = committed.topic, committed.topic.name
        if self._deleted and name in self._deleted:
            return
        batch = committed.batch
        self.chains.note(topic)
        for tell in self._kept.committed:
            tell(name, batch)
        self.retained.add(batch)
        if subscriptions := self.subscriptions.of_topic(name):
            self.pages.add(batch, committed.columns)
        for subscription in subscriptions:
            self.wake(subscription)

    def _on_rows(self, rows: SharedRows) -> None:
        """Small events of several topics are committed: most of them concern nobody."""
        gone, kept = self._deleted, self._kept
        self.chains.note_each(topic for topic, _ in rows.parts)
        parts = {topic.name: part for topic, part in rows.parts}
        names = parts.keys()
        told = names & {RETAINED} | kept.followed(names) if rows.plain else names
        heard = self.subscriptions.among(names)
        for name in [one for one in names if one in told or one in heard]:
            if gone and name in gone:
                continue
            part = parts[name]
            if name in told:
                batch = Batch.whole(name, *part.frame())
                for tell in kept.committed:
                    tell(name, batch)
                self.retained.add(batch)
            if name in heard:
                self.pages.add_part(name, part.alone())
                for subscription in self.subscriptions.of_topic(name):
                    self.wake(subscription)

    def _after_failure(self) -> None:
        """Topics may be gone and shorter than they were."""
        self._drop_orphans()
        self._kept.taken_back()
        for one in self.subscriptions:
            one.cursor.clamp(self.log.topic(one.topic).next_offset)
            self.wake(one)

    def _drop_orphans(self) -> None:
        self._kept.drop_orphans(self.log.topics())
        for one in list(self.subscriptions):
            if not self.log.has_topic(one.topic):
                self._end(one, "the topic is gone")

    # Topics

    def check_topic(self, name: str) -> None:
        """Raise InvalidName, ReservedName if clients may not publish to such a topic.

        One of an earlier version may have any name that a log can keep.
        """
        accepted_topic(name)
        if not self.options.control_characters and not self.log.has_topic(name):
            check_plain(name)

    def create_topic(self, name: str, options: TopicOptions | None = None) -> None:
        """Make a topic; raises TopicExists, InvalidName, LimitReached."""
        self._check_new(name)
        self.log.create_topic(name, options or self.options_for(name))
        self._made(name)

    def _check_new(self, name: str, others: int = 0) -> None:
        """Raises InvalidName, LimitReached, if no topic of that name can be made.

        ``others`` are to be made in front of it.
        """
        self.check_topic(name)
        if self.log.topic_count + others >= self.options.max_topics:
            raise LimitReached("topics", self.options.max_topics, "max_topics")
        payer = self.accounts.payer
        if payer is not None and not self.log.has_topic(name):
            payer.check_topics(others + 1)

    def _made(self, name: str) -> None:
        """A topic is made, in the group that is open now."""
        payer = self.accounts.payer
        self.throttle.log(
            *(logger, logging.INFO, "Topic %s is created", name),
            about=name,
            extra={"action": "topic_created", "topic": name},
        )
        if payer is not None:
            self.registry.make(name, payer.user)

    def bound(self, name: str) -> None:
        """Have a topic bounded as dead letters are, unless its owner has chosen."""
        if name in self._bounded:
            return
        topic = self.log.topic(name) if self.log.has_topic(name) else None
        if topic is not None and topic.going:
            return  # the next caller does it
        self._bounded.add(name)
        if topic is not None:
            options = topic.options
            if options.retention_age_s is None and options.retention_bytes is None:
                self._bound(name)

    def _bound(self, name: str) -> None:
        if self.log.has_topic(name):
            options = self.log.topic(name).options
            wanted = self._bounded_options(options)
            if options != wanted:
                self.log.set_options(name, wanted)

    def options_for(self, name: str) -> TopicOptions:
        """With which a topic is made, unless its owner chooses."""
        bounded = name == letters.TOPIC or name in self._bounded
        return self.letter_options if bounded else self.topic_options

    def _bounded_options(self, options: TopicOptions) -> TopicOptions:
        return letters.bounded(
            options,
            self.options.dead_letter_retention_age_s,
            self.options.dead_letter_retention_bytes,
        )

    def delete_topic(self, name: str) -> None:
        """Remove a topic, its events and its subscriptions, with the open group.

        Raises UnknownTopic, BeingDeleted.
        """
        self.log.drop_topic(name, lambda: self._deleted.append(name))

    def _forget_topic(self, name: str) -> None:
        for one in list(self.subscriptions.of_topic(name)):
            self._end(one, "the topic was deleted")
        self.pages.forget(name)
        self._kept.forget(name)

    # Publishing

    def publish(
        self,
        topic: str,
        events: Columns,
        *,
        relaxed: bool = False,
        keep: bool = False,
        charged: bool = False,
    ) -> Appended:
        """Append events to a topic, which is made if need be: all of them, or none.

        ``relaxed``: no promise that they are on disk; ``keep``: the last is retained;
        ``charged``: to the account of their publisher, at an earlier time.
        Raises InvalidName, ReservedName, LimitReached, InvalidBatch, InvalidPayload,
        WriteFailed: then none of them is stored.
        """
        accounts = self.accounts
        size = 0 if accounts.payer is None else accounts.admitted(topic, events)
        appended = self._store(topic, events, relaxed=relaxed, keep=keep)
        if size and charged:
            accounts.kept(topic, size)
        elif size:
            accounts.published(topic, len(events), size)
        return appended

    def _store(
        self, topic: str, events: Columns, *, relaxed: bool, keep: bool
    ) -> Appended:
        new = None
        if not self.log.has_topic(topic):
            self._check_new(topic)
            new = self.options_for(topic)
        elif topic[0] == "$":
            accepted_topic(topic)
        self.check_payloads(topic, events.payloads)
        self.stamp(topic, events, new)
        appended = (self.retained if keep else self.log).append(
            topic, events, relaxed=relaxed, create=new
        )
        if new is not None:
            self._made(topic)
        return appended

    def publish_rows(
        self, topics: Sequence[str], events: Columns, *, relaxed: bool = False
    ) -> AppendedRows:
        """As ``publish``, each event to the topic at its place: all of them, or none.

        Raises BeingDeleted too.
        """
        new: dict[str, TopicOptions] = {}
        once = dict.fromkeys(topics)
        found = self.log.find_topics(once)
        if len(found) < len(once):
            for name in [name for name in once if name not in found]:
                self._check_new(name, len(new))
                new[name] = self.options_for(name)
        for name in [name for name in found if name[0] == "$"]:
            accepted_topic(name)
        sizes = self.accounts.admitted_rows(lambda: _by_topic(topics, events))
        options = {name: topic.options for name, topic in found.items()}
        self._look_into(topics, events, options | new)
        appended = self.log.append_rows(topics, events, relaxed=relaxed, create=new)
        for name in new:
            self._made(name)
        for name, size in sizes.items():
            self.accounts.published(name, *size)
        return appended

    def _look_into(
        self,
        topics: Sequence[str],
        events: Columns,
        options: Mapping[str, TopicOptions],
    ) -> None:
        """As ``check_payloads`` and ``stamp``, each event with its topic."""
        after_ms = {
            name: int(one.expires_s * 1000)
            for name, one in options.items()
            if one.expires_s is not None
        }
        if gates := self.registry.gates.keys() & options.keys():
            places = places_of(topics)
            for name in gates:
                self.check_payloads(name, [events.payloads[at] for at in places[name]])
        if after_ms:
            events.expire_each_after([after_ms.get(name, 0) for name in topics])

    def publish_group(self, events: Mapping[str, Columns]) -> None:
        """Append checked events to topics, which are made if need be: all, or none."""
        new = {
            topic: self.options_for(topic)
            for topic in events
            if not self.log.has_topic(topic)
        }
        self.log.append_group(events, create=new)
        for topic in new:
            self._made(topic)

    def stamp(
        self, topic: str, events: Columns, options: TopicOptions | None = None
    ) -> None:
        """Have events expire as their topic says, unless they say it themselves."""
        if options is None:
            options = self.log.topic(topic).options
        if options.expires_s is not None:
            events.expire_after(int(options.expires_s * 1000))

    def check_payloads(self, topic: str, payloads: Sequence[bytes]) -> None:
        """Raises InvalidPayload for the first that does not fit the topic's schema."""
        gate = self.registry.gates.get(topic)
        if gate is not None:
            gate.check(payloads)

    def accept(
        self,
        topic: str,
        events: Columns,
        *,
        units: Sequence[int] = (),
        dedup_ids: list[str | None] | None = None,
        now_s: float = 0.0,
        relaxed: bool = False,
        keep: bool = False,
        charged: bool = False,
        stored: Callable[[StoredPiece], None] | None = None,
    ) -> Accepted:
        """Store what can be of a publisher's batch; see penstock.broker.publishing."""
        how = PublishTerms(self, topic, now_s, relaxed, keep, charged, stored)
        return accept(how, events, units, dedup_ids)

    def accept_rows(
        self,
        topics: Sequence[str],
        events: Columns,
        *,
        units: Sequence[int] = (),
        dedup_ids: list[str | None] | None = None,
        now_s: float = 0.0,
        relaxed: bool = False,
        stored: Callable[[StoredPiece], None] | None = None,
    ) -> Accepted:
        """As ``accept``, each event to the topic at its place, and nothing is raised.

        What one topic is refused for is told by its units, and the others are stored.
        """
        how = RowsTerms(self, units, dedup_ids, now_s, relaxed, stored)
        return accept_rows(how, topics, events)

    def publish_once(
        self, topic: str, events: Columns, dedup_ids: list[str | None], now_s: float
    ) -> list[int]:
        """Append those events whose dedup id is new; the offsets of all of them."""
        return publish_once(self, topic, events, dedup_ids, now_s)

    def release(self, message: PendingMessage, now_s: float) -> None:
        """Publish a pending message; raises InvalidPayload if it is a dead letter."""
        release(self, message, now_s)

    # Subscribing

    def subscribe(
        self,
        subscriber: str,
        topic: str,
        policy: Policy,
        start: str | int = "latest",
        *,
        temporary: bool = False,
    ) -> Subscription:
        """Make or resume a subscription.

        ``start`` counts for a new one: ``latest``, ``earliest``, an offset, or
        ``time:`` with milliseconds.
        Raises UnknownTopic, BeingDeleted, WrongOrder, WrongQos, TakenInOrder,
        LimitReached, QuotaReached.
        """
        self.gathering.store()  # what was published before is in front of its start
        if not self.log.has_topic(topic):
            raise UnknownTopic(topic)
        if self.log.topic(topic).going:
            raise BeingDeleted(topic)
        known = self.subscriptions.get(subscriber, topic)
        if known is None:
            place = resolved(self.log, topic, start)
            owner = self.accounts.subscribes()
            return self.subscriptions.add(
                subscriber, topic, policy, place, temporary=temporary, owner=owner
            )
        check_resumed(known, policy)
        if known.policy != policy or not known.active or known.suspended:
            known.govern(policy)
            self.subscriptions.update(known)
            self.wake(known)  # its window may be larger now
        return known

    def attach(
        self, subscription: Subscription, outlet: Outlet, prefetch: int = 0
    ) -> Consumer:
        """Let a connection consume a subscription; raises TakenInOrder."""
        consumer = Consumer(subscription, outlet, prefetch)
        consumer.payer = self.accounts.payer
        self.awake[outlet] = None
        return consumer

    def detach(self, consumer: Consumer) -> None:
        """A connection is gone: what it held goes to others, waits, or was lost."""
        now_s = self.log.now_ms() / 1000
        failed = consumer.detach(now_s)
        if consumer.subscription.temporary:
            self.subscriptions.remove(consumer.subscription)
        else:
            self.failure_handling.carry_out(consumer.subscription, failed, now_s)

    def unsubscribe(self, consumer: Consumer) -> None:
        """Leave a subscription; the last to leave ends it, its position is kept."""
        self.detach(consumer)
        subscription = consumer.subscription
        if not subscription.temporary and not subscription.consumers:
            self.deactivate(subscription.subscriber, subscription.topic)

    def deactivate(self, subscriber: str, topic: str) -> None:
        """End a subscription that has no consumer, its position kept."""
        one = self.subscriptions.get(subscriber, topic)
        if one is not None and not one.consumers and (one.active or one.suspended):
            one.active = one.suspended = False
            self.subscriptions.update(one)

    def forget(self, subscriber: str, topic: str) -> None:
        """Remove a subscription with its position, for good."""
        one = self.subscription(subscriber, topic)
        self._end(one, "the subscription was forgotten")

    def seek(self, subscriber: str, topic: str, start: str | int) -> int:
        """Move a subscription; what it owes is forgotten. The new position."""
        one = self.subscription(subscriber, topic)
        one.seek(resolved(self.log, topic, start))
        self.subscriptions.update(one)
        self.wake(one)
        return one.cursor.start

    def subscription(self, subscriber: str, topic: str) -> Subscription:
        """The subscription of that name; raises UnknownSubscription."""
        found = self.subscriptions.get(subscriber, topic)
        if found is None:
            raise UnknownSubscription(subscriber, topic)
        return found

    def wake(self, subscription: Subscription) -> None:
        if subscription.active and subscription.credit > 0:
            for consumer in subscription.consumers:
                self.wake_one(consumer)

    def wake_offered(self, subscription: Subscription) -> None:
        """Wake consumers that may have events of keys now which others had."""
        keyed = subscription.keyed
        if keyed is not None and keyed.offered and subscription.credit > 0:
            keyed.offered.clear()
            self.wake(subscription)

    def wake_one(self, consumer: Consumer) -> None:
        """There may be something for a consumer to take."""
        self.awake[consumer.outlet] = None
        if consumer.ready is not None:
            consumer.ready[consumer] = None

    def _end(self, subscription: Subscription, reason: str) -> None:
        self.dismiss(subscription, reason)
        self.subscriptions.remove(subscription)

    def dismiss(self, subscription: Subscription, reason: str) -> None:
        """Send away all consumers of a subscription that stops."""
        now_s = self.log.now_ms() / 1000
        for consumer in list(subscription.consumers):
            consumer.detach(now_s)
            consumer.outlet.ended(consumer, reason)
            self.awake[consumer.outlet] = None

    # Delivering

    def take(self, consumer: Consumer, now_s: float, limit: int) -> list[Portion]:
        """Events for a consumer, within its subscription's window."""
        portions = consumer.take(now_s, limit)
        if missed := consumer.subscription.missed(now_s):
            self.failure_handling.carry_out(consumer.subscription, missed, now_s)
        policy = consumer.subscription.policy
        self.wake_offered(consumer.subscription)
        if consumer.subscription.fresh.unfinished:
            consumer.subscription.fresh.unfinished = False
            self.wake_one(consumer)
        if portions:
            self.traffic.took(consumer.subscription, portions, now_s)
        if portions and policy.qos == 0:  # no answer will ask for what is left
            if consumer.ready is None:  # or it looks for itself
                self.awake[consumer.outlet] = None
        elif portions and policy.ack_timeout_s is not None:
            self.timers.arm(consumer.subscription, now_s + policy.ack_timeout_s)
        return portions

    def answer(
        self, consumer: Consumer, offset: int, answer: Reply, now_s: float
    ) -> OwedState | None:
        """Move the handshake of a delivery on; None if it is not in flight there."""
        subscription = consumer.subscription
        if not consumer.holds(offset):
            return None
        state = subscription.answer(offset, answer, now_s)
        if state is RELEASED:
            interval_s = subscription.policy.release_interval_s
            self.timers.arm(subscription, now_s + interval_s)
        return state

    def resume(self, consumer: Consumer, now_s: float) -> list[Owed]:
        """Deliveries whose PUBREL a new consumer has to get again."""
        found = consumer.subscription.resume(consumer, now_s)
        if found:
            interval_s = consumer.subscription.policy.release_interval_s
            self.timers.arm(consumer.subscription, now_s + interval_s)
        return found

    def refuse(
        self,
        consumer: Consumer,
        offset: int,
        failure: Failure,
        now_s: float,
        *,
        final: bool = False,
    ) -> bool:
        """A consumer failed with an event; False if it has no such event.

        ``final``: it is dead-lettered at once, whatever tries are left.
        """
        subscription = consumer.subscription
        if not consumer.holds(offset):
            return False
        failed = subscription.refuse(offset, failure, now_s, final=final)
        if failed is None:
            return False  # it was received already, only PUBCOMP is missing
        self.failure_handling.carry_out(subscription, [failed], now_s)
        return True

    def next_s(self) -> float | None:
        """When time brings something next, as far as that is known."""
        moments = self.timers.next_s(), self.delays.next_s()
        return min((one for one in moments if one is not None), default=None)

    def tick(self, now_s: float) -> None:
        """Act on everything whose time has come."""
        self.traffic.tick(now_s)
        self.throttle.tick(now_s)
        self.sinks.staging.expire(now_s, self.throttle)
        for one in self.delays.let_go(int(now_s * 1000), self.subscriptions.of_topic):
            self.wake(one)
        self.failure_handling.tick(now_s)

    def dead_letter(self, *, gateway: str, reason: str, raw: bytes) -> None:
        """Keep raw input that makes no sense; raises Backlogged, WriteFailed."""
        letters.keep_raw(self.log, gateway, reason, raw, self.letter_options)
        self.accounts.charge(1, len(raw))


def _by_topic(topics: Sequence[str], events: Columns) -> dict[str, Columns]:
    return {name: events.pick(places) for name, places in places_of(topics).items()}
