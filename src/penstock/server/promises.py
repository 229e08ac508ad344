"""Promises of the engine to coroutines: a group is on disk, or there is room.

One future per group that somebody waits for, whoever waits; the engine's turn after a
commit settles them all.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from penstock.broker.promised import Promised, carrier, has_ended, is_lost
from penstock.delivery.consumer import Member
from penstock.errors import InDoubt, WriteFailed
from penstock.server.engine import TICK_S, Engine


class EnginePromises:
    """A member of the engine; see penstock.http.promises for what it promises."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._broker = engine.broker
        self._log = engine.broker.log
        self._groups: dict[int, asyncio.Future[None]] = {}
        self._ends: Promised[int] = Promised(self._log)
        self._room: asyncio.Future[None] | None = None
        engine.members[self] = self

    @property
    def members(self) -> dict[object, Member]:
        return self._engine.members

    async def kept(self, group: int) -> None:
        await self._ended(group)
        if is_lost(self._log, group):
            failure = self._log.failure
            assert failure is not None, "a commit has failed"
            raise failure

    async def kept_at_last(self, group: int) -> None:
        await self._ended(group)
        while is_lost(self._log, group):
            group = carrier(self._log, group)
            await self._ended(group)

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

    def trouble(self) -> InDoubt | WriteFailed | None:
        if self._engine.paused_until_s is None:
            return None
        return self._log.doubt or self._log.failure

    # Called by the engine

    def flush(self, now_s: float) -> None:
        """A commit has ended: tell those who waited for it."""
        for group, _ in self._ends.take_any():
            future = self._groups.pop(group)
            if not future.done():
                future.set_result(None)
        if self._ends:
            self._broker.waiting[self] = None

    def resume(self) -> None:
        """There is room again."""
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def _ended(self, group: int) -> None:
        self._engine.kick()
        if has_ended(self._log, group):
            return
        future = self._groups.get(group)
        if future is None:
            future = self._groups[group] = self._engine.loop.create_future()
            self._ends.put(group, group)
            self._broker.waiting[self] = None
        # Shielded: one who gives up does not take it from the others.
        await asyncio.shield(future)
