"""How time passes for a broker under test: from one moment that matters to the next.

The clock moves only when everything has happened that can happen without it: the pump
rests, and every handler that was called has ended, or waits for time to pass. A handler
that waits for anything else, or computes, gets ``patience_s`` of real time; after that
it is taken for one that hangs.

Handlers are wrapped: which calls do something now, and which wait for time to pass, is
what the harness has to know before it moves the clock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from penstock.embedded import Domain
from penstock.embedded.handler import Handler
from penstock.embedded.local import LocalLink
from penstock.embedded.run import HandlerRun
from penstock.errors import NotSettled
from penstock.testing.clock import VirtualClock
from penstock.testing.faults import FaultKey, Faults, InjectedFault, Mishap
from penstock.testing.timers import CALL, HandlerCall, VirtualTimers


class Calls:
    def __init__(self, timers: VirtualTimers, faults: Faults) -> None:
        self.begun = 0
        """Calls so far, also of handlers that failed before they began."""
        self._timers = timers
        self._faults = faults
        self._closed = False
        self._under_way: dict[int, HandlerCall] = {}
        """By the identity of what the handler got, which a HandlerRun has as well."""

    def watched(self, domain: Domain) -> Domain:
        """The domain, with handlers that are watched."""
        twin = Domain(domain.name)
        for handler in domain:
            twin.add(self._watched(handler, (domain.name, handler.topic)))
        return twin

    def awake(self, runs: Iterable[HandlerRun]) -> list[HandlerCall | None]:
        """Calls that do something now, or are about to begin or to be noted."""
        runs = list(runs)
        if not runs:
            return []
        asleep = self._timers.sleepers()
        found = []
        for run in runs:
            call = self._call_of(run)
            if call is None or not (call.hangs or call in asleep):
                found.append(call)
        return found

    def close(self) -> None:
        """Let nothing begin any more, not even what sleeps now."""
        self._closed = True

    def _watched(self, handler: Handler, key: FaultKey) -> Handler:
        function = handler.function

        async def call(first: Any, *more: Any) -> Any:
            begun = self._begin(first)
            CALL.set(begun)
            try:
                mishap = self._faults.next(key)
                if mishap.delay_s:
                    await asyncio.sleep(mishap.delay_s)
                self._check(mishap)
                return await function(first, *more)
            finally:
                CALL.set(None)
                self._end(first)

        def call_blocking(first: Any, *more: Any) -> Any:
            begun = self._begin(first)
            try:
                mishap = self._faults.next(key)
                if mishap.delay_s:
                    self._timers.sleep_blocking(begun, mishap.delay_s)
                self._check(mishap)
                return function(first, *more)
            finally:
                self._end(first)

        watched = call if handler.is_async else call_blocking
        return replace(handler, function=watched)

    def _check(self, mishap: Mishap) -> None:
        if self._closed:
            raise InjectedFault("the harness was closed meanwhile")
        if mishap.error is not None:
            raise mishap.error

    def _begin(self, first: object) -> HandlerCall:
        self.begun += 1
        call = self._under_way[id(first)] = HandlerCall(self._timers)
        self._timers.stir()
        return call

    def _end(self, first: object) -> None:
        self._under_way.pop(id(first), None)

    def _call_of(self, run: HandlerRun) -> HandlerCall | None:
        events = run.context.events  # what a handler of batches got; others the first
        found = self._under_way.get(id(events))
        return found or (self._under_way.get(id(events[0])) if events else None)


R = TypeVar("R")

# Calls of handlers in one wait: beyond it they keep each other busy for ever.
MAX_CALLS = 100_000
# The clock moves by this at least, so that whatever is repeated comes to an end.
STEP_S = 0.001
# Turns of the loop in which nothing happens: one thing follows another a turn later.
_CALM = 3


class VirtualPace:
    def __init__(
        self, link: LocalLink, clock: VirtualClock, faults: Faults, patience_s: float
    ) -> None:
        self.timers = VirtualTimers(clock, self._stir)
        self.calls = Calls(self.timers, faults)
        self._link = link
        self._clock = clock
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._stirred = asyncio.Event()
        self._ticked_s = clock.now_s()
        link.engine.members[self] = self

    async def settle(self, timeout_s: float | None) -> None:
        """Move on until nothing is left to do; raises NotSettled."""
        begin_s = self._clock.now_s()
        end_s = inf if timeout_s is None else begin_s + timeout_s
        most = self.calls.begun + MAX_CALLS
        while True:
            await self._calm(most)
            if await self._link.settled(self._link.runners):
                return
            next_s = self._next_s()
            if next_s is None or next_s > end_s:
                raise self._not_settled(begin_s)
            self._move(next_s)

    async def advance(self, seconds: float) -> None:
        """Move on by so much, from one moment that matters to the next."""
        end_s = self._clock.now_s() + seconds
        most = self.calls.begun + MAX_CALLS
        await self._calm(most)
        while (next_s := self._next_s()) is not None and next_s <= end_s:
            self._move(next_s)
            await self._calm(most)
        self._clock.move_to(end_s)
        self._tick()
        await self._calm(most)

    async def through(self, work: Coroutine[Any, Any, R]) -> R:
        """Have something done; time passes only where the log waits after a failure."""
        task = self._loop.create_task(work)
        task.add_done_callback(lambda _: self._stir())
        try:
            while not task.done():
                self.past_the_pause()
                await self._turn(None)
            return await task
        finally:
            task.cancel()

    def past_the_pause(self) -> None:
        """Have the log write again if it waits after a failure, or nothing would."""
        until_s = self._link.engine.paused_until_s
        if until_s is not None:
            self._move(until_s)

    def close(self) -> None:
        """Let nothing begin any more; handlers asleep in a thread wake up and end."""
        self.calls.close()
        self.timers.fire(inf)

    def flush(self, now_s: float) -> None:
        """The pump has turned; see server.engine.Member."""
        self._stirred.set()

    async def _calm(self, most: int) -> None:
        """Return when nothing happens any more unless time passes."""
        if self._clock.now_s() != self._ticked_s:
            self._tick()  # the test has moved the clock
        calm = 0
        while calm < _CALM:
            await asyncio.sleep(0)
            if self.calls.begun > most:
                raise self._not_settled(self._clock.now_s())
            if not self._link.resting:
                await self._turn(None)
                calm = 0
            elif (awake := self.calls.awake(self._runs())) or self._starting():
                if not await self._turn(self._patience_s):
                    for call in filter(None, awake):
                        call.hangs = True
                calm = 0
            else:
                calm += 1

    async def _turn(self, patience_s: float | None) -> bool:
        """Return when something may have changed; False if nothing did for long."""
        self._stirred.clear()
        self._link.broker.awake[self] = None  # be told of the pump's next turn
        stirred = False  # another call that waits may clear it
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                stirred = await self._stirred.wait()
        # A machine that was busy elsewhere: what came meanwhile is seen to now.
        for _ in range(_CALM):
            await asyncio.sleep(0)
        return stirred or self._stirred.is_set()

    def _runs(self) -> list[HandlerRun]:
        return [run for runner in self._link.runners for run in runner.running()]

    def _starting(self) -> bool:
        return any(runner.starting for runner in self._link.runners)

    def _next_s(self) -> float | None:
        moments = self._link.next_s(), self.timers.next_s()
        return min((one for one in moments if one is not None), default=None)

    def _move(self, at_s: float) -> None:
        self._clock.move_to(max(at_s, self._clock.now_s() + STEP_S))
        self._tick()

    def _tick(self) -> None:
        now_s = self._ticked_s = self._clock.now_s()
        self.timers.fire(now_s)
        self._link.tick()

    def _stir(self) -> None:
        """From any thread: something has changed."""
        if threading.get_ident() == self._thread:
            self._stirred.set()
            return
        with suppress(RuntimeError):  # the loop has closed meanwhile
            self._loop.call_soon_threadsafe(self._stirred.set)

    def _not_settled(self, begin_s: float) -> NotSettled:
        runners = self._link.runners
        busy = [one for one in runners if not one.idle] or runners
        names = [f"{one.subscriber} of {one.handler.topic}" for one in busy]
        return NotSettled(self._clock.now_s() - begin_s, names)
