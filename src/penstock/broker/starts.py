"""Where a subscription begins, and whether it can go on where it was."""

from __future__ import annotations

from penstock.delivery.subscription import Subscription
from penstock.errors import InvalidOption, TakenInOrder, WrongOrder, WrongQos
from penstock.log import BrokerLog
from penstock.model.policy import Policy

TIME = "time:"

_WORDS = ("latest", "earliest")
_LIMIT = "'latest', 'earliest', an offset, or 'time:' with milliseconds"


def resolved(log: BrokerLog, topic: str, start: str | int) -> int:
    """The offset that ``latest``, ``earliest``, an offset or ``time:<ms>`` means."""
    owner = log.topic(topic)
    if start == "latest":
        return owner.next_offset
    if start == "earliest":
        return owner.start_offset
    if isinstance(start, str) and start.startswith(TIME):
        return log.offset_at(topic, int(start[len(TIME) :]))
    return min(max(int(start), owner.start_offset), owner.next_offset)


def check_resumed(known: Subscription, policy: Policy) -> None:
    """Raises WrongOrder, WrongQos, TakenInOrder if it cannot go on by these rules."""
    name, topic, before = known.subscriber, known.topic, known.policy
    if before.order != policy.order and (
        known.consumers or "priority" in (before.order, policy.order)
    ):
        raise WrongOrder(name, topic, policy.order, before.order)
    if known.keeps_qos(policy.qos):
        raise WrongQos(name, topic, policy.qos, before.qos)
    mixed = before.in_order != policy.in_order
    if known.consumers and (mixed or policy.for_one):
        raise TakenInOrder(name, topic)


def accepted_start(start: str | int) -> str | int:
    """A start that the broker can resolve; raises InvalidOption."""
    if isinstance(start, int):
        if start < 0:
            raise InvalidOption("start", start, "an offset of 0 or more")
        return start
    digits = start.removeprefix(TIME)
    # More digits than fit into 64 bits mean no time.
    is_time = digits != start and digits.isascii() and digits.isdigit()
    if start not in _WORDS and not (is_time and len(digits) <= 18):
        raise InvalidOption("start", start[:80], _LIMIT)
    return start
