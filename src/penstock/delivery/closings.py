"""Numbers of letters that are closed, neighbours together: a run costs what one does.

Somebody who sends a million letters again and leaves the first one open costs one run,
not a million numbers in memory and in every checkpoint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Literal

# In front of the floor: what became of letters that nobody asks about any more.
MAX_RUNS = 10_000

Verdict = Literal["republished", "dropped"]
Run = tuple[int, int, Verdict]


class Closings:
    """Runs of (first, end, verdict), by number; they do not overlap."""

    __slots__ = ("_firsts", "_runs")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._runs = [(first, end, verdict) for first, end, verdict in runs]
        self._firsts = [run[0] for run in self._runs]

    def runs(self) -> list[Run]:
        return list(self._runs)

    def get(self, number: int) -> Verdict | None:
        at = bisect_right(self._firsts, number) - 1
        if at < 0 or number >= self._runs[at][1]:
            return None
        return self._runs[at][2]

    def count(self, first: int, end: int) -> int:
        """How many of the numbers from ``first`` to in front of ``end`` are closed."""
        at = max(bisect_right(self._firsts, first) - 1, 0)
        closed = 0
        for low, high, _ in self._runs[at:]:
            if low >= end:
                break
            closed += max(min(high, end) - max(low, first), 0)
        return closed

    def add(self, number: int, verdict: Verdict) -> None:
        """Note what became of a number; what is known of it stays."""
        if self.get(number) is not None:
            return
        at = bisect_right(self._firsts, number)
        first, end, low, high = number, number + 1, at, at
        if at > 0 and self._runs[at - 1][1:] == (number, verdict):
            first, low = self._runs[at - 1][0], at - 1
        if at < len(self._runs) and self._runs[at][::2] == (end, verdict):
            end, high = self._runs[at][1], at + 1
        self._put(low, high, [(first, end, verdict)])

    def discard(self, number: int) -> None:
        """Forget what became of a number."""
        verdict = self.get(number)
        if verdict is None:
            return
        at = bisect_right(self._firsts, number) - 1
        first, end, _ = self._runs[at]
        parts = [(first, number, verdict), (number + 1, end, verdict)]
        self._put(at, at + 1, [run for run in parts if run[0] < run[1]])

    def raised(self, floor: int) -> int:
        """The end of the numbers without a gap from the floor on: the new floor.

        Of those in front of it the newest runs are kept.
        """
        at = max(bisect_right(self._firsts, floor) - 1, 0)
        while at < len(self._runs) and self._runs[at][0] <= floor:
            floor = max(floor, self._runs[at][1])
            at += 1
        if at > MAX_RUNS:
            self._put(0, at - MAX_RUNS, [])
        return floor

    def _put(self, low: int, high: int, runs: list[Run]) -> None:
        self._runs[low:high] = runs
        self._firsts[low:high] = [run[0] for run in runs]
