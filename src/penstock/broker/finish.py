"""Settling events together with publishing what their handling brought.

Both are in one group of the journal: after a crash either the event is settled and
everything it caused is there, or it is owed again and nothing of that is. If the commit
fails, what was published is taken back, so the event is owed again.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.broker.broker import Broker
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Failed
from penstock.errors import LimitReached
from penstock.log import Columns


def finish(
    broker: Broker,
    consumer: Consumer,
    offsets: list[int],
    events: Mapping[str, Columns],
) -> None:
    """Settle what a consumer has in flight, and publish with it; all or nothing.

    Raises InvalidName, ReservedName, InvalidBatch, InvalidPayload, LimitReached, and
    what the log raises: then nothing was done.
    """
    check(broker, events)
    payer = broker.accounts.payer
    sizes = {topic: columns.size for topic, columns in events.items()}
    if payer is not None:
        payer.admit(sizes)
        payer.check_topics(sum(not broker.log.has_topic(name) for name in events))
    count = sum(map(len, events.values()))
    broker.publish_group(events)
    if payer is not None and count:
        payer.keep(sizes)
        payer.charge(count, sum(sizes.values()))
    subscription = consumer.subscription
    for offset in offsets:
        owed = subscription.owed[offset]
        amended = subscription.amended.get(offset)
        errors = subscription.errors.get(offset, [])
        failed = Failed(offset, owed.tries, errors, None, owed.level, amended)
        broker.unconfirmed_letters.add(broker.group, subscription, failed)
    subscription.settle_all(offsets, consumer)
    broker.wake_offered(subscription)


def check(broker: Broker, events: Mapping[str, Columns]) -> None:
    """Raise what publishing these events would be refused for."""
    new = [name for name in events if not broker.log.has_topic(name)]
    if broker.log.topic_count + len(new) > broker.options.max_topics:
        raise LimitReached("topics", broker.options.max_topics, "max_topics")
    for topic, columns in events.items():
        broker.check_topic(topic)
        broker.stamp(
            topic, columns, broker.options_for(topic) if topic in new else None
        )
        columns.check(broker.log.options.max_event_bytes)
        broker.check_payloads(topic, columns.payloads)
