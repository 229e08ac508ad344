"""Virtual time for handlers: what they sleep passes when the clock of the test moves.

On the event loop of a harness ``time``, ``call_at`` and ``call_later`` are replaced,
which all sleeps and timeouts of asyncio are made of. They differ only for code that a
handler runs or has begun, which a context variable tells; all other code on that loop
keeps real time. So a handler that sleeps for an hour takes no time at all, and the
timeout of a test framework is what it always was.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar
from heapq import heappop, heappush
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from penstock.testing.clock import VirtualClock

# What asyncio.sleep has called in the end: who waits for it waits for nothing else.
_SLEEP = "_set_result_unless_cancelled"


class HandlerCall:
    """One call of a handler that has begun and not ended."""

    __slots__ = ("hangs", "timers")

    def __init__(self, timers: VirtualTimers) -> None:
        self.timers = timers
        self.hangs = False
        """Whether it was waited for in vain, in real time."""


CALL: ContextVar[HandlerCall | None] = ContextVar("penstock_call", default=None)


class Timer:
    """Something to be done at a moment of virtual time."""

    __slots__ = ("_done", "at_s", "call", "fire", "sleeps")

    def __init__(
        self,
        at_s: float,
        fire: Callable[[], object],
        call: HandlerCall,
        *,
        sleeps: bool,
    ) -> None:
        self.at_s = at_s
        self.fire = fire
        self.call = call
        self.sleeps = sleeps
        """Whether the call does nothing until then."""
        self._done: Callable[[], bool] | None = None

    def unless(self, done: Callable[[], bool]) -> None:
        """It does not count any more once ``done`` says so."""
        self._done = done

    @property
    def live(self) -> bool:
        return self._done is None or not self._done()


class VirtualTimers:
    """What handlers wait for on a virtual clock."""

    def __init__(self, clock: VirtualClock, stir: Callable[[], None]) -> None:
        self.clock = clock
        self.stir = stir
        """To be called, from any thread, when something has changed."""
        self._heap: list[tuple[float, int, Timer]] = []
        self._ties = count()
        self._lock = threading.Lock()

    def add(self, timer: Timer) -> None:
        """From any thread."""
        with self._lock:
            heappush(self._heap, (timer.at_s, next(self._ties), timer))
        self.stir()

    def next_s(self) -> float | None:
        """The next moment that a handler waits for."""
        with self._lock:
            while self._heap and not self._heap[0][2].live:
                heappop(self._heap)
            return self._heap[0][0] if self._heap else None

    def fire(self, now_s: float) -> None:
        """Do everything whose moment has come."""
        due = []
        with self._lock:
            while self._heap and self._heap[0][0] <= now_s:
                due.append(heappop(self._heap)[2])
        for timer in due:
            if timer.live:
                timer.call.hangs = False
                timer.fire()

    def sleepers(self) -> set[HandlerCall]:
        """Calls that do nothing until time passes."""
        with self._lock:
            timers = [timer for _, _, timer in self._heap]
        return {timer.call for timer in timers if timer.sleeps and timer.live}

    def sleep_blocking(self, call: HandlerCall, seconds: float) -> None:
        """In a thread: return when that much virtual time has passed."""
        over = threading.Event()
        at_s = self.clock.now_s() + seconds
        self.add(Timer(at_s, over.set, call, sleeps=True))
        over.wait()


class VirtualHandle(asyncio.TimerHandle):
    """A timer of asyncio that its event loop knows nothing of."""

    def cancel(self) -> None:
        asyncio.Handle.cancel(self)


_users: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Have handlers on a loop live in virtual time."""
    users = _users.get(loop, 0)
    _users[loop] = users + 1
    if users:
        return
    real_time, real_at, real_later = loop.time, loop.call_at, loop.call_later

    def time() -> float:
        call = CALL.get()
        return real_time() if call is None else call.timers.clock.now_s()

    def call_at(
        when: float,
        callback: Callable[..., object],
        *args: Any,  # whatever the callback takes
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        call = CALL.get()
        if call is None:
            return real_at(when, callback, *args, context=context)
        return _virtual(loop, call, when, callback, args, context)

    def call_later(
        delay: float,
        callback: Callable[..., object],
        *args: Any,  # whatever the callback takes
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        call = CALL.get()
        if call is None:
            return real_later(delay, callback, *args, context=context)
        when = call.timers.clock.now_s() + delay
        return _virtual(loop, call, when, callback, args, context)

    vars(loop).update(time=time, call_at=call_at, call_later=call_later)


def uninstall(loop: asyncio.AbstractEventLoop) -> None:
    """Give a loop its own time back, when no harness needs it any more."""
    _users[loop] -= 1
    if not _users[loop]:
        del _users[loop]
        for name in ("time", "call_at", "call_later"):
            del vars(loop)[name]


def _virtual(
    loop: asyncio.AbstractEventLoop,
    call: HandlerCall,
    when: float,
    callback: Callable[..., object],
    args: tuple[Any, ...],
    context: Context | None,
) -> asyncio.TimerHandle:
    handle = VirtualHandle(when, callback, args, loop, context)

    def fire() -> None:
        loop.call_soon(callback, *args, context=context)

    sleeps = getattr(callback, "__name__", "") == _SLEEP
    timer = Timer(when, fire, call, sleeps=sleeps)
    timer.unless(handle.cancelled)
    call.timers.add(timer)
    return handle
