"""The hold-back buffer: events come in any order and leave by number.

Numbers run from 1 without gaps, so what may leave is a walk through a dict: no heap
and no sorting while the stream is whole. Whole receives are taken at once; only where
one of them brings a number twice, or an old one, its events are looked at singly.

A missing number is waited for until more than ``hold_back`` events wait behind it, or
for ``gap_s``: counted from the first event behind it, and anew whenever the event
expected next does come. So a slow source that shuffles is waited for, and several
gaps found together are given up together. Where the stream is cut into receives
makes no difference to what is skipped for lack of room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count, takewhile
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Reordered(Generic[T]):
    """What a call brought: events in order, useless ones, and the numbers given up."""

    ready: list[T] = field(default_factory=list)
    late: list[T] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)


class Reorder(Generic[T]):
    def __init__(self, hold_back: int, gap_s: float, expected: int = 1) -> None:
        self.expected = expected
        self._hold_back = hold_back
        self._gap_s = gap_s
        self._held: dict[int, T] = {}
        # When the events came that reach further than all before them, with how far
        # they reach: the first of them is the first that told of a gap. Each reaches
        # to a number that is held, so there are never more than those.
        self._reached: deque[tuple[float, int]] = deque()
        self._progress_s = float("-inf")
        # The numbers held, as a heap, and some that have left; made when a gap is
        # skipped, and dropped when most of it has left.
        self._lowest: list[int] = []

    @property
    def held(self) -> int:
        """How many events wait."""
        return len(self._held)

    def take(self, numbers: list[int], items: list[T], now_s: float) -> Reordered[T]:
        """Take in events, and let out what is in order or can wait no longer."""
        taken: Reordered[T] = Reordered()
        start, end = 0, len(numbers)
        while start < end:
            # As many as fit for certain, so that no gap is skipped which the same
            # receive closes before there are too many.
            stop = start + max(self._hold_back - len(self._held), 1)
            if start == 0 and stop >= end:
                self._put(numbers, items, now_s, taken)
            else:
                self._put(numbers[start:stop], items[start:stop], now_s, taken)
            start = stop
            if self.expected in self._held:
                self._progress_s = now_s
                self._drain(taken)
            if len(self._held) > self._hold_back:
                self._skip(taken)
        self._expire(now_s, taken)
        return taken

    def expire(self, now_s: float) -> Reordered[T]:
        """Give up the gaps that are too old."""
        taken: Reordered[T] = Reordered()
        self._expire(now_s, taken)
        return taken

    def flush(self) -> Reordered[T]:
        """Let out everything, in order, whatever is missing."""
        taken: Reordered[T] = Reordered()
        while self._held:
            self._skip(taken)
        return taken

    def restart(self) -> None:
        """Expect number 1 again. Nothing may be held."""
        assert not self._held, "flushed when the former source left"
        self.expected = 1

    def _put(
        self, numbers: Sequence[int], items: list[T], now_s: float, taken: Reordered[T]
    ) -> None:
        fresh = dict(zip(numbers, items, strict=True))
        held = self._held
        whole = (
            len(fresh) == len(numbers)
            and min(fresh) >= self.expected
            and (not held or held.keys().isdisjoint(fresh.keys()))
        )
        if not whole:
            fresh = self._sifted(numbers, items, taken)
            if not fresh:
                return
        if held:
            held.update(fresh)
        else:
            self._held = fresh
        if self._lowest:
            for number in fresh:
                heappush(self._lowest, number)
        highest = max(fresh)
        if not self._reached or highest > self._reached[-1][1]:
            self._reached.append((now_s, highest))

    def _sifted(
        self, numbers: Sequence[int], items: list[T], taken: Reordered[T]
    ) -> dict[int, T]:
        """The events with a number that is neither old nor there; others are late."""
        fresh: dict[int, T] = {}
        for number, item in zip(numbers, items, strict=True):
            if number < self.expected or number in self._held or number in fresh:
                taken.late.append(item)
            else:
                fresh[number] = item
        return fresh

    def _drain(self, taken: Reordered[T]) -> None:
        run = list(takewhile(self._held.__contains__, count(self.expected)))
        taken.ready += map(self._held.pop, run)
        self.expected += len(run)
        while self._reached and self._reached[0][1] < self.expected:
            self._reached.popleft()
        # Most of the heap has left: make it anew when it is wanted.
        if len(self._lowest) > 2 * len(self._held):
            self._lowest.clear()

    def _skip(self, taken: Reordered[T]) -> None:
        """Give up what is missing in front of the lowest number held."""
        if not self._lowest:
            self._lowest = list(self._held)
            heapify(self._lowest)
        while (lowest := heappop(self._lowest)) < self.expected:
            pass  # has left meanwhile
        taken.gaps.append((self.expected, lowest - 1))
        self.expected = lowest
        self._drain(taken)

    def _expire(self, now_s: float, taken: Reordered[T]) -> None:
        while self._held:
            since_s = max(self._reached[0][0], self._progress_s)
            if now_s - since_s < self._gap_s:
                return
            self._skip(taken)
