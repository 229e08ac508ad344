"""The first events of a new source: does it go on, or does it start afresh?

Only number 1 tells, and events are shuffled, so it need not come first. All events are
kept until it is there, or so many have come without it that it will not come, or the
source has had its time.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Generic, TypeVar

T = TypeVar("T")


class Verdict(Enum):
    AFRESH = auto()
    GOES_ON = auto()


class FirstEvents(Generic[T]):
    """Keeps at most ``window`` events and what came with the last of them."""

    def __init__(self, window: int, wait_s: float) -> None:
        self.numbers: list[int] = []
        self.items: list[T] = []
        self._window = window
        self._wait_s = wait_s
        self._since_s = 0.0

    def take(self, numbers: list[int], items: list[T], now_s: float) -> Verdict | None:
        """Keep events, and say what the source does once that is clear."""
        if not numbers:
            return None
        overdue = self.overdue(now_s)
        if not self.numbers:
            self._since_s = now_s
        room = self._window - len(self.numbers)
        self.numbers += numbers
        self.items += items
        if overdue:
            return Verdict.GOES_ON
        if 1 in numbers[:room]:
            return Verdict.AFRESH
        return Verdict.GOES_ON if len(self.numbers) >= self._window else None

    def overdue(self, now_s: float) -> bool:
        """Whether the source sent something and has had its time."""
        return bool(self.numbers) and now_s - self._since_s >= self._wait_s
