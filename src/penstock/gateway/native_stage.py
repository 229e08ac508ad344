"""Staging on a native connection: events of an epoch that is not committed yet."""

from __future__ import annotations

from penstock.broker import epochs
from penstock.broker.broker import Broker
from penstock.desk.access import check_owner, check_writes, owner_of
from penstock.errors import InvalidBatch
from penstock.gateway.native_pub import NativePublishing, check_given, columns_of
from penstock.wire.native import Stage


def stage(broker: Broker, message: Stage, by: NativePublishing, now_s: float) -> bool:
    """Keep the events of a message; False if their epoch is committed already.

    Raises what publishing them would be refused for, NotAllowed if the query is of
    somebody else, MissingStage, LimitReached.
    """
    check_owner(by.grants, broker, message.query)
    publish = message.publish
    if publish.payloads:
        by.grants.check_publish(publish.topic)
    else:  # an empty part is of no topic
        check_writes(by.grants, message.query)
    if publish.dedup_ids is not None:
        raise InvalidBatch("dedup ids", "given", "none: an epoch is once anyway")
    check_given(publish)
    events = columns_of(publish, now_s, by.producer)
    return epochs.stage(
        broker,
        message.query,
        message.epoch,
        (message.partition, message.attempt),
        message.piece,
        publish.topic,
        events,
        now_s,
        owner_of(by.grants),
    )
