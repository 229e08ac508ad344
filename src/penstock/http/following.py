"""Who follows a topic: a named subscriber, or one that is gone tomorrow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta
from starlette.requests import HTTPConnection

from penstock.access.account import Account
from penstock.broker.names import accepted_subscriber
from penstock.broker.starts import accepted_start
from penstock.delivery.subscription import Subscription
from penstock.http.stream_consumer import StreamConsumer, temporary_name
from penstock.model.policy import MAX_FACTOR, MAX_S, MAX_WINDOW, Order, Policy

if TYPE_CHECKING:
    from penstock.http.house import House

FollowWindow = Annotated[int, Meta(ge=1, le=MAX_WINDOW)]
FollowPause = Annotated[float, Meta(ge=0, le=MAX_S)]
# Of deliveries that the client has said no number for.
WINDOW = 1000


class FollowTerms(msgspec.Struct, frozen=True, kw_only=True):
    """How a subscriber wants its events; None: as it is, or as it is by default."""

    window: FollowWindow | None = None
    ack_timeout_s: Annotated[float, Meta(gt=0)] | None = None
    tries: Annotated[int, Meta(ge=1)] | None = None
    backoff_s: FollowPause | None = None
    backoff_factor: Annotated[float, Meta(ge=0, le=MAX_FACTOR)] | None = None
    max_backoff_s: FollowPause | None = None
    jitter: Annotated[float, Meta(ge=0, le=1)] | None = None
    order: Order | None = None

    def policy(self, known: Subscription | None, default: Policy) -> Policy:
        """What is said here counts, then what was said before; raises InvalidOption.

        A client that acknowledges needs a subscription that waits for it.
        """
        before = default if known is None else known.policy
        said = msgspec.structs.asdict(self)
        given = {name: value for name, value in said.items() if value is not None}
        if default.qos > before.qos:
            given["qos"] = default.qos
        if given.get("order", before.order) == "key":
            given["in_order"] = False  # it does not keep them in order itself
        return replace(before, **given) if given else before


def address_of(connection: HTTPConnection) -> str:
    """Where a client is, if that is known."""
    return "" if connection.client is None else connection.client.host


def start_in(text: str | None) -> str | int:
    """A start as a query says it; raises InvalidOption."""
    if text is None:
        return "latest"
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    return accepted_start(text)


async def follow(
    house: House,
    topic: str,
    subscriber: str | None,
    *,
    start: str | int,
    terms: FollowTerms,
    default: Policy,
    address: str = "",
    account: Account | None = None,
) -> StreamConsumer:
    """Subscribe and attach; returns when a new subscription is on disk.

    ``account`` is of the user whose subscription it is then.

    Raises UnknownTopic, InvalidName, ReservedName, WrongOrder, WrongQos, TakenInOrder,
    LimitReached, QuotaReached, InvalidOption.
    """
    broker = house.broker
    with broker.accounts.acting(account):
        if subscriber is None:
            name, policy = temporary_name(), terms.policy(None, default)
            made = broker.subscribe(name, topic, policy, start, temporary=True)
        else:
            name = accepted_subscriber(subscriber)
            policy = terms.policy(broker.subscriptions.get(name, topic), default)
            made = broker.subscribe(name, topic, policy, start)
        consumer = StreamConsumer(house, made, address)
    if made.temporary:
        return consumer
    try:
        await house.promises.kept_at_last(broker.promised)
    except BaseException:
        consumer.close()
        raise
    return consumer
