"""One connection's share in a subscription."""

from __future__ import annotations

from typing import Protocol

from penstock.delivery.owed import Owed, Portion
from penstock.delivery.subscription import Subscription


class Outlet(Protocol):
    """Whoever sends deliveries on: it is woken when there may be some."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """PUBREL is due again for these."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        """The subscription was suspended or forgotten."""


class Consumer:
    """Takes events of a subscription; several may share one."""

    __slots__ = ("outlet", "subscription")

    def __init__(self, subscription: Subscription, outlet: Outlet) -> None:
        self.subscription = subscription
        self.outlet = outlet
        subscription.consumers.append(self)

    def holds(self, offset: int) -> bool:
        """Whether this consumer has the event in flight."""
        return self.subscription.owed.holder_of(offset) is self

    def settle_run(self, first: int, end: int) -> bool:
        """Settle neighbours that are all in flight here; False if they are not."""
        return self.subscription.settle_run(first, end, self)

    def take(self, now_s: float, limit: int) -> list[Portion]:
        """Events to send now; a fair share if others consume with this one."""
        subscription = self.subscription
        others = len(subscription.consumers)
        if others > 1:
            limit = min(limit, -(-subscription.credit // others))
        return subscription.take(self, now_s, limit)

    def detach(self) -> None:
        """End the share: what it held goes back to the subscription."""
        if self in self.subscription.consumers:
            self.subscription.consumers.remove(self)
            self.subscription.give_back(self)
