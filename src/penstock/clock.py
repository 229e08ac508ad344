"""Where time comes from: a Clock is asked only at the edges, never by the core."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...


# A clock that is slewed differs by less from one look to the next.
_STEP_S = 1.0


class SystemClock:
    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        return time.time()

    def was_set_s(self) -> float:
        """By how much somebody has set the clock since this was asked last."""
        ahead_s = time.time() - time.monotonic()
        step_s = ahead_s - self._ahead_s
        self._ahead_s = ahead_s
        return step_s if abs(step_s) > _STEP_S else 0.0


class ManualClock:
    """A clock that moves when told, for tests and simulations."""

    def __init__(self, now_s: float = 1_700_000_000.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds
