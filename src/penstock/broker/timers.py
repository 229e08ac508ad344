"""When to look at which subscription next: one heap for all of them."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

from penstock.delivery.subscription import Subscription


class Timers:
    """A subscription is in the heap for its earliest moment, and maybe for later ones
    that no longer count."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Subscription]] = []
        self._ties = count()

    def arm(self, subscription: Subscription, at_s: float) -> None:
        """Look at it at that moment, unless it is looked at before."""
        if not subscription.armed_s or at_s < subscription.armed_s:
            subscription.armed_s = at_s
            heappush(self._heap, (at_s, next(self._ties), subscription))

    def due(self, now_s: float) -> list[Subscription]:
        """Subscriptions whose moment has come; they must be armed again."""
        found = []
        while self._heap and self._heap[0][0] <= now_s:
            at_s, _, subscription = heappop(self._heap)
            if subscription.armed_s == at_s:
                subscription.armed_s = 0.0
                found.append(subscription)
        return found

    def shift(self, seconds: float) -> None:
        """The clock was set: what was due in a while still is."""
        # A heap stays one if everything in it moves alike.
        self._heap = [(at_s + seconds, tie, one) for at_s, tie, one in self._heap]
        for one in {one for _, _, one in self._heap if one.armed_s}:
            one.armed_s += seconds
            one.owed.shift(seconds)

    def next_s(self) -> float | None:
        """The next moment at which something may be due."""
        return self._heap[0][0] if self._heap else None
