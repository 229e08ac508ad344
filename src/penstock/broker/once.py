"""Publishing with dedup ids: an id that is known is answered, and not stored again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import InvalidPayload
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.broker.broker import Broker


def publish_once(
    broker: Broker,
    topic: str,
    events: Columns,
    dedup_ids: list[str | None],
    now_s: float,
) -> list[int]:
    """Append those events whose dedup id is new; the offsets of all of them."""
    now_ms = int(now_s * 1000)
    plan = broker.dedup.plan(topic, dedup_ids, now_ms)
    if not plan.fresh:
        return plan.placed(0)
    try:
        appended = broker.publish(topic, events.pick(plan.fresh))
    except InvalidPayload as error:
        raise error.at(plan.fresh[error.index]) from None
    offsets = plan.placed(appended.base_offset)
    fresh = [(dedup_ids[index], offsets[index]) for index in plan.fresh]
    named = [(id_, offset) for id_, offset in fresh if id_ is not None]
    if named:
        ids, places = zip(*named, strict=True)
        broker.dedup.add(topic, list(ids), list(places), now_ms)
    return offsets
