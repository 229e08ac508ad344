"""Progress that a reader reports of itself, as the position of a subscription.

A reader that keeps its own place (a Spark query has its checkpoint) is sent nothing. It
tells where it is, so that its lag is seen like that of any subscriber.
"""

from __future__ import annotations

from penstock.broker.acceptance import accepted_subscriber
from penstock.broker.broker import Broker
from penstock.broker.starts import resolved
from penstock.delivery.subscription import Subscription
from penstock.errors import NotMoved, UnknownTopic
from penstock.model.policy import Policy


def progress(broker: Broker, subscriber: str, topic: str, offset: int) -> Subscription:
    """Make or move a subscription that nobody consumes; it stands at ``offset`` then.

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
    _check(one)
    if one.position() != place:
        broker.seek(subscriber, topic, place)
    return one


def _check(one: Subscription) -> None:
    """Raises NotMoved for one that has, or had, consumers that something is owed."""
    if one.consumers:
        raise NotMoved(one.subscriber, one.topic, f"{len(one.consumers)} consume it")
    if one.owed:
        reason = f"{len(one.owed)} events that were delivered are not settled"
        raise NotMoved(one.subscriber, one.topic, reason)
