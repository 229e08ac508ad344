"""Handlers as a harness runs them: watched, and with the mishaps a test has planned.

A handler is wrapped, and otherwise the same. Which calls do something now, and which
wait for time to pass, is what the harness has to know before it moves the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from penstock.embedded import Domain
from penstock.embedded.handler import Handler
from penstock.embedded.run import HandlerRun
from penstock.testing.faults import Faults, InjectedFault, Key, Mishap
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

    def _watched(self, handler: Handler, key: Key) -> Handler:
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
