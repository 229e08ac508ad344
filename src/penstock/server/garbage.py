"""Garbage that refers to itself: looked for rarely, and after connections have ended.

See collector.py for the rest of it. Connections of HTTP and TLS leave some: what they
held would stay until enough of other things was made. So it is looked for when some
have ended, as long as that takes a hundredth of the time at most. What is free then
goes back to the system, as the allocator of C by itself keeps most of it.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable

from penstock.collector import relieve
from penstock.model.moment import is_due

# Looking may cost a hundredth of the time, and a thousandth if one look takes so long
# that a client might notice.
REST = 100
LONG_REST = 1_000
LONG_S = 0.1


class Garbage:
    """Made once the server has started: what is there by then is not looked at."""

    def __init__(self) -> None:
        relieve()
        self._closed = 0
        self._at_s = self._rest_s = 0.0
        self._give_back = _trim()

    def tick(self, now_s: float, closed: int) -> None:
        """Called every second, with how many connections have ended so far."""
        if closed == self._closed or not is_due(self._at_s, self._rest_s, now_s):
            return
        self._closed = closed
        begun_s = time.thread_time()
        gc.collect()
        self._give_back()
        took_s = time.thread_time() - begun_s
        self._rest_s = took_s * (REST if took_s < LONG_S else LONG_REST)
        self._at_s = now_s + self._rest_s


def _trim() -> Callable[[], object]:
    """What gives free memory back; nothing, if this is not the C library of GNU."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: None) if trim is None else (lambda: trim(0))
