"""Acks that wait: each event is settled some time after it came.

Events that came together wait together, and the caller that waits for more events is
woken when the first of them are due: there is no timer for an event.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from penstock.client import Subscription
from penstock.wire.native import Events


class DelayedAcks:
    """Gives batches of a subscription, and settles what was given after ``delay_s``."""

    def __init__(
        self,
        subscription: Subscription,
        delay_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._subscription = subscription
        self._delay_s = delay_s
        self._clock = clock
        self._waiting: deque[tuple[float, list[int]]] = deque()

    def next_batch(self, timeout_s: float | None = None) -> Events | None:
        """As of the subscription; what is due meanwhile is settled."""
        limit_s = None if timeout_s is None else self._clock() + timeout_s
        while True:
            self._settle_due()
            until_s = self._sooner(limit_s)
            left_s = None if until_s is None else max(until_s - self._clock(), 0)
            batch = self._subscription.next_batch(left_s)
            over = limit_s is not None and self._clock() >= limit_s
            if batch is not None or over:
                return batch

    def settle(self, offsets: list[int]) -> None:
        """These came now."""
        if offsets:
            self._waiting.append((self._clock() + self._delay_s, offsets))

    def end(self) -> None:
        """Settle what still waits: it was handled, also if the user is in a hurry."""
        while self._waiting:
            self._subscription.settle(self._waiting.popleft()[1])
        self._subscription.flush()

    def _settle_due(self) -> None:
        now_s = self._clock()
        while self._waiting and self._waiting[0][0] <= now_s:
            self._subscription.settle(self._waiting.popleft()[1])

    def _sooner(self, limit_s: float | None) -> float | None:
        due_s = self._waiting[0][0] if self._waiting else None
        known = [one for one in (due_s, limit_s) if one is not None]
        return min(known, default=None)
