"""Waiting for a turn of the engine: one wake-up for all that it brought.

A coroutine that streams waits here. It may be notified as often as there is something
for it: it wakes up once.
"""

from __future__ import annotations

import asyncio


class Notifier:
    """``notify`` wakes all coroutines that wait, or the one that waits next."""

    __slots__ = ("_loop", "_notified", "_waiters")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._notified = False
        self._waiters: set[asyncio.Future[bool]] = set()

    def notify(self) -> None:
        if not self._waiters:
            self._notified = True
            return
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def wait(self, seconds: float) -> bool:
        """Return when it notifies, or has since the last time; False: it did not."""
        if self._notified:
            self._notified = False
            return True
        waiter: asyncio.Future[bool] = self._loop.create_future()
        self._waiters.add(waiter)
        timer = self._loop.call_later(max(seconds, 0.0), _give_up, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
