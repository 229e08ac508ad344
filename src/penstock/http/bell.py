"""Waiting for a turn of the engine: one wake-up for all that it brought.

A coroutine that streams waits at a bell. Whoever has something for it rings, as often
as it likes: the coroutine wakes up once.
"""

from __future__ import annotations

import asyncio


class Bell:
    """``ring`` wakes everybody who waits, or whoever waits next."""

    __slots__ = ("_loop", "_rung", "_waiters")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = False
        self._waiters: set[asyncio.Future[bool]] = set()

    def ring(self) -> None:
        if not self._waiters:
            self._rung = True
            return
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def wait(self, seconds: float) -> bool:
        """Return when it rings, or has since the last time; False: it did not."""
        if self._rung:
            self._rung = False
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
