"""One connection's share in a subscription."""

from __future__ import annotations

from typing import Protocol

from penstock.delivery.owed import Failed, Owed, Payer, Portion
from penstock.delivery.subscription import Subscription
from penstock.errors import InvalidOption, TakenInOrder


class Outlet(Protocol):
    """The sender of deliveries: it is woken when there may be some."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """PUBREL is due again for these."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """The subscription was suspended or forgotten."""

    def moved(self, consumer: Consumer) -> None:
        """The subscription was moved: what was delivered so far counts for nothing."""


class Member(Protocol):
    """Acts once a turn of the engine in which its outlet was woken; no connection."""

    def flush(self, now_s: float) -> None: ...


class Consumer:
    """Takes events of a subscription; several may share one.

    ``prefetch``: how many unsettled deliveries it may have, 0 for whatever it gets.
    """

    __slots__ = (
        "away",
        "outlet",
        "payer",
        "prefetch",
        "ready",
        "serial",
        "subscription",
    )

    def __init__(
        self, subscription: Subscription, outlet: Outlet, prefetch: int = 0
    ) -> None:
        """Raises InvalidOption, TakenInOrder: events in order go to one at a time."""
        if prefetch < 0:
            raise InvalidOption("prefetch", prefetch, "at least 0")
        if subscription.consumers and subscription.policy.for_one:
            raise TakenInOrder(subscription.subscriber, subscription.topic)
        self.subscription = subscription
        self.outlet = outlet
        self.prefetch = prefetch
        self.ready: dict[Consumer, None] | None = None
        """Where it is put when there may be something to take, if its outlet looks."""
        self.payer: Payer | None = None
        """On whose account it consumes."""
        self.away = False
        """Whether it takes nothing for now."""
        self.serial = 0
        """Another number for each consumer that a subscription has had."""
        subscription.joined(self)

    def holds(self, offset: int) -> bool:
        """Whether this consumer has the event in flight."""
        return self.subscription.owed.holder_of(offset) is self

    def settle_run(self, first: int, end: int) -> bool:
        """Settle neighbours that are all in flight here; False if they are not."""
        return self.subscription.settle_run(first, end, self)

    def take(self, now_s: float, limit: int) -> list[Portion]:
        """Events to send now; a fair share if others consume with this one.

        A consumer that says how much it can have at hand gets that, and no share.
        """
        subscription = self.subscription
        others = len(subscription.consumers)
        if self.prefetch:
            free = self.prefetch - subscription.owed.count_of(self)
            if subscription.policy.in_order:
                free -= (
                    subscription.owed.paused
                )  # others may wait for those: leave room
            limit = min(limit, free)
        elif others > 1:
            limit = min(limit, -(-subscription.credit // others))
        return subscription.take(self, now_s, limit)

    @property
    def short_of_events(self) -> bool:
        """Whether it lacks nothing else: then settling lets nothing more go to it."""
        one = self.subscription
        return not (self.prefetch or len(one.consumers) > 1) and one.short_of_events

    def go_away(self) -> None:
        """Take nothing for now, and keep what is in flight."""
        self.away = True
        if self.subscription.keyed is not None:
            self.subscription.keyed.left(self)

    def come_back(self) -> None:
        """Take part again."""
        self.away = False
        if self.subscription.keyed is not None:
            self.subscription.keyed.joined(self)

    def stand_behind(self) -> None:
        """Let the others who share the subscription be woken first the next time."""
        consumers = self.subscription.consumers
        if len(consumers) > 1:
            consumers.remove(self)
            consumers.append(self)

    def detach(self, now_s: float) -> list[Failed]:
        """End the share: what it held goes back, or was its last try."""
        if self not in self.subscription.consumers:
            return []
        self.subscription.left(self)
        return self.subscription.give_back(self, now_s)
