"""Where time comes from: a Clock is asked only at the edges, never by the core."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...


class SystemClock:
    def now_s(self) -> float:
        return time.time()


class ManualClock:
    """A clock that moves when told, for tests and simulations."""

    def __init__(self, now_s: float = 1_700_000_000.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds
