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
    """The machine's. To a caller of ``was_set_s`` it is set at that moment only.

    So everything that was planned is moved along with it, and nothing is planned by the
    new time before that.
    """

    def __init__(self) -> None:
        self._ahead_s = _ahead_s()
        self._minded = False

    def now_s(self) -> float:
        return time.monotonic() + self._ahead_s if self._minded else time.time()

    def was_set_s(self) -> float:
        """By how much the clock was set since this was asked last."""
        ahead_s = _ahead_s()
        step_s = ahead_s - self._ahead_s
        self._ahead_s, self._minded = ahead_s, True
        return step_s if abs(step_s) > _STEP_S else 0.0


def _ahead_s() -> float:
    return time.time() - time.monotonic()


class ManualClock:
    """A clock that moves when told, for tests and simulations."""

    def __init__(self, now_s: float = 1_700_000_000.0) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        self._now_s += seconds
