"""The desk: what people ask of a broker, whatever they ask through.

The command line, the native protocol and HTTP all come here. Answers are plain rows,
bounded in size; ``ask`` takes questions by name with arguments to be checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from heapq import nsmallest
from typing import Literal

from msgspec.structs import asdict

from penstock.broker.broker import Broker
from penstock.broker.names import accepted_subscriber, accepted_topic
from penstock.broker.starts import accepted_start, resolved
from penstock.delivery.states import IN_FLIGHT, RELEASED, OwedState
from penstock.delivery.subscription import Subscription
from penstock.desk.arguments import Limit, Number
from penstock.desk.audit_trail import AuditDesk
from penstock.desk.chains import ChainDesk
from penstock.desk.error_log import ErrorDesk
from penstock.desk.events import EventDesk
from penstock.desk.figures import FigureDesk, Figures
from penstock.desk.letters import LetterDesk
from penstock.desk.logs import LogDesk
from penstock.desk.notes import NoteDesk
from penstock.desk.redrive import RedriveDesk
from penstock.desk.retained import RetainedDesk
from penstock.desk.schemas import SchemaDesk
from penstock.desk.sessions import SessionDesk
from penstock.desk.sinks import SinkDesk
from penstock.desk.users import UserDesk
from penstock.desk.verbs import Promise, Verb, call, find, verb, verbs_of
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.subscriptions import (
    MovedSubscription,
    OwedRow,
    State,
    SubscriptionPage,
    SubscriptionRow,
    SubscriptionView,
)
from penstock.desk.views.topics import TopicOffset, TopicPage, TopicRow, TopicView
from penstock.errors import NotMoved, UnknownTopic
from penstock.log import StoredTopic
from penstock.model.policy import POLICY, Policy, settings_in

_POLICY_SHOWN = tuple(
    name for name in POLICY if name in SubscriptionView.__struct_fields__
)


class Desk:
    def __init__(self, broker: Broker, figures: Figures | None = None) -> None:
        """``figures`` know what is around the broker; others know the broker only."""
        self._broker = broker
        self.figures = figures or Figures(broker)
        self.audit = AuditDesk(broker)
        self.letters = LetterDesk(broker, self.audit)
        self.redrive = RedriveDesk(broker, self.audit)
        self.errors = ErrorDesk(broker)
        self.logs = LogDesk(broker)
        self.chains = ChainDesk(broker)
        self.events = EventDesk(broker)
        self.schemas = SchemaDesk(broker)
        self.notes = NoteDesk(broker)
        self.sinks = SinkDesk(broker)
        self.sessions = SessionDesk(broker)
        self.retained = RetainedDesk(broker)
        self.users = UserDesk(broker)
        self._figure_desk = FigureDesk(self.figures)
        self.verbs: dict[str, Verb] = verbs_of(self)
        for desk in list(vars(self).values()):
            self.verbs.update(verbs_of(desk))

    def find(self, name: str) -> Verb:
        """What can be asked by that name; raises UnknownVerb."""
        return find(self.verbs, name)

    def ask(self, name: str, arguments: Mapping[str, object]) -> object:
        """Answer a question by name; raises UnknownVerb, InvalidArgument, others."""
        return call(self.find(name), arguments)

    # Topics

    @verb("topics")
    def topics(
        self, *, after: str = "", own: bool = False, limit: Limit = MAX_ROWS
    ) -> TopicPage:
        """Topics by name, behind ``after``; ``own``: Penstock's as well."""
        found = [
            topic
            for topic in self._broker.log.each_topic()
            if topic.name > after and (own or topic.name[0] != "$")
        ]
        rows = nsmallest(limit, found, key=lambda topic: topic.name)
        more = len(found) > limit
        return TopicPage(topics=[self._topic(one) for one in rows], more=more)

    @verb("topics.show")
    def topic(self, *, name: str) -> TopicView:
        """One topic with its settings and readers; raises UnknownTopic."""
        topic = self._broker.log.topic(name)
        options = topic.options
        levels = self._broker.levels.get(name)
        readers = self.subscriptions(topic=name)
        metadata = self._broker.registry[name]
        return TopicView(
            **asdict(self._topic(topic)),
            retention_age_s=options.retention_age_s,
            retention_bytes=options.retention_bytes,
            expires_s=options.expires_s,
            dead_letter_expired=options.dead_letter_expired,
            compact=options.compact,
            segment_bytes=options.segment_bytes,
            segment_age_s=options.segment_age_s,
            levels=[0] if levels is None else levels.levels(),
            readers=readers.subscriptions,
            more_readers=readers.more,
            schema_version=None if metadata.latest is None else metadata.latest.number,
            schema_type="" if metadata.latest is None else metadata.latest.type,
            documented=metadata.documentation is not None,
            comments=len(metadata.comments),
        )

    @verb("topics.offset_at")
    def offset_at(self, *, name: str, timestamp: int) -> TopicOffset:
        """The first offset of that time or later, the end if none is.

        Raises UnknownTopic.
        """
        return TopicOffset(
            topic=name, offset=self._broker.log.offset_at(name, timestamp)
        )

    @verb("topics.create", Promise.STORED)
    def create_topic(
        self,
        *,
        name: str,
        durability: Literal["sync", "os"] | None = None,
        retention_age_s: float | None = None,
        retention_bytes: int | None = None,
        compact: bool | None = None,
        segment_bytes: int | None = None,
        segment_age_s: float | None = None,
        expires_s: float | None = None,
        dead_letter_expired: bool | None = None,
    ) -> TopicView:
        """Make a topic; what is left out is as the server's settings say.

        Raises TopicExists, InvalidName, ReservedName, InvalidOption, LimitReached.
        """
        given = {
            "durability": durability,
            "retention_age_s": retention_age_s,
            "retention_bytes": retention_bytes,
            "compact": compact,
            "segment_bytes": segment_bytes,
            "segment_age_s": segment_age_s,
            "expires_s": expires_s,
            "dead_letter_expired": dead_letter_expired,
        }
        said = {key: value for key, value in given.items() if value is not None}
        # The values are those of the annotations above, which mypy cannot follow.
        options = replace(self._broker.options_for(name), **said)  # type: ignore[arg-type]
        self._broker.create_topic(name, options)
        return self.topic(name=name)

    @verb("topics.delete", Promise.STORED)
    def delete_topic(self, *, name: str) -> TopicRow:
        """Remove a topic with its events and subscriptions, for good.

        Raises UnknownTopic, ReservedName, BeingDeleted.
        """
        row = self._topic(self._broker.log.topic(accepted_topic(name)))
        self._broker.delete_topic(name)
        return row

    def _topic(self, topic: StoredTopic) -> TopicRow:
        waiting = topic.unwritten_bytes
        return TopicRow(
            name=topic.name,
            number=topic.id,
            start_offset=topic.start_offset,
            end_offset=topic.end_offset,
            events=topic.end_offset - topic.start_offset,
            bytes=topic.bytes + waiting,
            durability=topic.options.durability,
            subscriptions=_count(self._broker.subscriptions.of_topic(topic.name)),
        )

    # Subscriptions

    @verb("subscriptions")
    def subscriptions(
        self,
        *,
        subscriber: str | None = None,
        topic: str | None = None,
        after: Number = 0,
        limit: Limit = MAX_ROWS,
    ) -> SubscriptionPage:
        """Subscriptions by number, behind ``after``."""
        subscriptions = self._broker.subscriptions
        wanted: Iterable[Subscription] = subscriptions
        if topic is not None:
            wanted = subscriptions.of_topic(topic)
        elif subscriber is not None:
            wanted = subscriptions.of_subscriber(subscriber)
        found = [
            one
            for one in wanted
            if one.number > after and subscriber in (None, one.subscriber)
        ]
        rows = nsmallest(limit, found, key=lambda one: one.number)
        return SubscriptionPage(
            subscriptions=[_subscription(one) for one in rows],
            more=len(found) > limit,
        )

    @verb("subscriptions.show")
    def subscription(
        self, *, subscriber: str, topic: str, limit: Limit = MAX_ROWS
    ) -> SubscriptionView:
        """One subscription, its policy and what it owes, the lowest offsets first.

        Raises UnknownSubscription.
        """
        one = self._broker.subscription(subscriber, topic)
        return SubscriptionView(
            **asdict(_subscription(one)),
            **settings_in(one.policy, _POLICY_SHOWN),
            deliveries=[_owed(one, offset) for offset in nsmallest(limit, one.owed)],
            more_deliveries=len(one.owed) > limit,
        )

    @verb("subscriptions.forget", Promise.KEPT)
    def forget(self, *, subscriber: str, topic: str) -> SubscriptionRow:
        """Remove a subscription with its position; raises UnknownSubscription."""
        one = self._broker.subscription(subscriber, topic)
        row = _subscription(one)
        self._broker.forget(subscriber, topic)
        return row

    @verb("subscriptions.seek", Promise.KEPT)
    def seek(
        self, *, subscriber: str, topic: str, start: str | int
    ) -> MovedSubscription:
        """Move a subscription; what it owes is forgotten.

        Raises UnknownSubscription, InvalidOption.
        """
        start = accepted_start(start)
        position = self._broker.seek(subscriber, topic, start)
        return MovedSubscription(subscriber=subscriber, topic=topic, position=position)

    @verb("subscriptions.resume", Promise.KEPT)
    def resume(self, *, subscriber: str, topic: str) -> SubscriptionRow:
        """Let a subscription that was suspended go on; others stay as they are.

        It waits for its next consumer. Raises UnknownSubscription.
        """
        one = self._broker.subscription(subscriber, topic)
        if one.suspended:
            one.govern(one.policy)
            self._broker.subscriptions.update(one)
        return _subscription(one)

    @verb("subscriptions.progress", Promise.KEPT)
    def progress(
        self, *, subscriber: str, topic: str, offset: Number, by: str = ""
    ) -> MovedSubscription:
        """Note where a reader stands that keeps its place itself.

        Raises UnknownTopic, NotMoved if a client consumes the subscription.
        """
        one = progress(self._broker, subscriber, topic, offset)
        return MovedSubscription(
            subscriber=subscriber, topic=topic, position=one.position()
        )


def _subscription(one: Subscription) -> SubscriptionRow:
    return SubscriptionRow(
        number=one.number,
        subscriber=one.subscriber,
        topic=one.topic,
        state=_state(one),
        temporary=one.temporary,
        position=one.position(),
        lag=one.lag(),
        in_flight=one.owed.in_flight,
        owed=len(one.owed),
        delayed=one.fresh.delayed,
        expired=one.fresh.expired,
        consumers=len(one.consumers),
    )


def _state(one: Subscription) -> State:
    if one.suspended:
        return "suspended"
    if not one.active:
        return "unsubscribed"
    return "connected" if one.consumers else "away"


def _stage(state: OwedState) -> str:
    if state is RELEASED:
        return "released"
    return "in flight" if state in IN_FLIGHT else "waiting"


def _owed(one: Subscription, offset: int) -> OwedRow:
    owed = one.owed[offset]
    return OwedRow(
        offset=offset,
        priority=None if owed.level < 0 else owed.level,
        tries=owed.tries,
        stage=_stage(owed.state),
        due_ms=int(owed.due_s * 1000) if owed.due_s else None,
        errors=[failure.line for failure in one.errors.get(offset, ())],
    )


def _count(things: Iterable[object]) -> int:
    return sum(1 for _ in things)


def progress(broker: Broker, subscriber: str, topic: str, offset: int) -> Subscription:
    """Make or move a subscription that has no consumer; it stands at ``offset`` then.

    A reader that keeps its own place (a Spark query has its checkpoint) is sent
    nothing. It tells where it is, so that its lag is seen like that of any subscriber.
    An offset outside the topic means its start or end. Raises InvalidName,
    ReservedName, UnknownTopic, LimitReached, NotMoved.
    """
    accepted_subscriber(subscriber)
    if not broker.log.has_topic(topic):
        raise UnknownTopic(topic)
    place = resolved(broker.log, topic, offset)
    one = broker.subscriptions.get(subscriber, topic)
    if one is None:
        return broker.subscribe(subscriber, topic, Policy(), place)
    _check_idle(one)
    if one.position() != place:
        broker.seek(subscriber, topic, place)
    return one


def _check_idle(one: Subscription) -> None:
    """Raises NotMoved for one that has, or had, consumers that something is owed."""
    if one.consumers:
        raise NotMoved(one.subscriber, one.topic, f"{len(one.consumers)} consume it")
    if one.owed:
        reason = f"{len(one.owed)} events that were delivered are not settled"
        raise NotMoved(one.subscriber, one.topic, reason)
