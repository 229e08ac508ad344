"""Promises of the engine to coroutines: a group is on disk, or the log is idle.

One future per group that somebody waits for, whoever waits; the engine's turn after a
commit settles them all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from penstock.errors import WriteFailed
from penstock.server.engine import TICK_S, Engine, Member

Result = TypeVar("Result")


class EnginePromises:
    """A member of the engine; see penstock.http.promises for what it promises."""

    def __init__(self, engine: Engine) -> None:
        self.errands: deque[Callable[[], None]] = deque()
        self._engine = engine
        self._broker = engine.broker
        self._log = engine.broker.log
        self._groups: dict[int, asyncio.Future[None]] = {}
        self._room: asyncio.Future[None] | None = None
        engine.members[self] = self

    @property
    def members(self) -> dict[object, Member]:
        return self._engine.members

    async def kept(self, group: int) -> None:
        await self._ended(group)
        if self._log.outcome(group) == "failed":
            failure = self._log.failure
            assert failure is not None, "a commit has failed"
            raise failure

    async def kept_at_last(self, group: int) -> None:
        await self._ended(group)
        while self._log.outcome(group) == "failed":
            group += 1
            await self._ended(group)

    async def alone(self, step: Callable[[], Result]) -> Result:
        done: asyncio.Future[Result] = self._engine.loop.create_future()

        def errand() -> None:
            if done.done():  # whoever wanted it has gone
                return
            try:
                done.set_result(step())
            except Exception as error:
                done.set_exception(error)

        self.errands.append(errand)
        self._engine.errand(self)
        return await done

    async def room(self) -> None:
        while self._engine.congested:
            if self._room is None:
                self._room = self._engine.loop.create_future()
                self._engine.pause(self)
            # The pause after a failed commit ends without anything happening.
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._room), TICK_S)

    def kick(self) -> None:
        self._engine.kick()

    def now_s(self) -> float:
        return self._engine.now_s()

    def trouble(self) -> WriteFailed | None:
        return None if self._engine.paused_until_s is None else self._log.failure

    # Called by the engine

    def flush(self, now_s: float) -> None:
        """A commit has ended: tell those who waited for it."""
        groups, self._groups = self._groups, {}
        for group, future in groups.items():
            if self._has_ended(group):
                if not future.done():
                    future.set_result(None)
            else:
                self._groups[group] = future
        if self._groups:
            self._broker.waiting[self] = None

    def resume(self) -> None:
        """There is room again."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def _ended(self, group: int) -> None:
        self._engine.kick()
        if self._has_ended(group):
            return
        future = self._groups.get(group)
        if future is None:
            future = self._groups[group] = self._engine.loop.create_future()
            self._broker.waiting[self] = None
        # Shielded: one who gives up does not take it from the others.
        await asyncio.shield(future)

    def _has_ended(self, group: int) -> bool:
        return group <= self._log.written or self._log.outcome(group) == "failed"
