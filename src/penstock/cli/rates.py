"""How fast events come: a line now and then in place of the events themselves."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.cli.delayed import DelayedAcks
from penstock.cli.output import say

LINE_S = 1.0


class RateCounter:
    """Counts events; says how many there were, and how fast they came."""

    def __init__(
        self,
        say: Callable[[str], None] = say,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = 0
        self._say = say
        self._clock = clock
        self._began_s = self._told_s = clock()
        self._told = 0

    def add(self, events: int) -> None:
        """Take note of events; a line if the last one is a while ago.

        While none come there is nothing to say.
        """
        self.total += events
        now_s = self._clock()
        if now_s - self._told_s >= LINE_S:
            if self.total > self._told:
                rate = (self.total - self._told) / (now_s - self._told_s)
                self._say(f"{self.total} events, {rate:.0f}/s")
            self._told_s, self._told = now_s, self.total

    def end(self) -> None:
        """The last line: of the whole time."""
        elapsed_s = self._clock() - self._began_s
        rate = self.total / elapsed_s if elapsed_s > 0 else 0.0
        self._say(f"{self.total} events in {elapsed_s:.1f} s, {rate:.0f}/s")


def show_rates(
    acks: DelayedAcks, count: int | None, *, ack: bool, rates: RateCounter
) -> None:
    """Take events, ``count`` of them at most, and acknowledge them."""
    try:
        while count is None or rates.total < count:
            batch = acks.next_batch(LINE_S)
            offsets = [] if batch is None else list(batch.offsets)
            if count is not None:
                offsets = offsets[: count - rates.total]
            if ack and offsets:
                acks.settle(offsets)
            rates.add(len(offsets))
    finally:
        acks.end()
        rates.end()
