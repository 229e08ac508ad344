"""Handlers that fail or take long because a test wants them to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

# Domain and topic: that is one handler.
FaultKey = tuple[str, str]
Error = BaseException | type[BaseException]


class InjectedFault(Exception):
    """A handler failed because the test said so."""


class Mishap(NamedTuple):
    """What happens to one call before the handler begins."""

    delay_s: float
    error: BaseException | None


@dataclass(slots=True)
class _HandlerFault:
    left: int | None
    """How many calls it is for; None: all of them."""
    delay_s: float = 0.0
    error: Error | None = None


class Faults:
    """What was planned for the next calls of handlers."""

    def __init__(self) -> None:
        self._planned: dict[tuple[FaultKey, bool], deque[_HandlerFault]] = {}
        self._lock = Lock()

    def fail(self, key: FaultKey, times: int | None, error: Error) -> None:
        """Have the next calls raise; after what was planned before."""
        self._plan((key, True), _HandlerFault(times, error=error))

    def slow(self, key: FaultKey, times: int | None, seconds: float) -> None:
        """Have the next calls take longer; after what was planned before."""
        self._plan((key, False), _HandlerFault(times, delay_s=seconds))

    def heal(self) -> None:
        """Forget everything that was planned."""
        with self._lock:
            self._planned.clear()

    def next(self, key: FaultKey) -> Mishap:
        """What happens to a call that begins now; from any thread."""
        with self._lock:
            slow, bad = self._take((key, False)), self._take((key, True))
        delay_s = 0.0 if slow is None else slow.delay_s
        return Mishap(delay_s, None if bad is None else _raised(bad.error))

    def _plan(self, place: tuple[FaultKey, bool], fault: _HandlerFault) -> None:
        with self._lock:
            self._planned.setdefault(place, deque()).append(fault)

    def _take(self, place: tuple[FaultKey, bool]) -> _HandlerFault | None:
        planned = self._planned.get(place)
        while planned and planned[0].left == 0:
            planned.popleft()
        if not planned:
            return None
        first = planned[0]
        if first.left is not None:
            first.left -= 1
        return first


def _raised(error: Error | None) -> BaseException | None:
    if isinstance(error, type):
        return error()
    # Raised before, it would carry the traceback of that along.
    return None if error is None else error.with_traceback(None)
