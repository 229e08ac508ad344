"""Small things that the tests of handlers need: events, handlers, a channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.clock import ManualClock
from penstock.embedded.event import Event
from penstock.embedded.handler import Handler
from penstock.embedded.job import Job
from penstock.embedded.options import HandlerOptions
from penstock.embedded.outgoing import Intent
from penstock.embedded.runner import Runner
from penstock.embedded.topic import Topic
from penstock.model.failure import Failure
from penstock.server.sync_pace import SyncPace


def event(offset: int = 0, payload: bytes = b"x", **more: Any) -> Event[bytes]:
    return Event(
        topic="t",
        offset=offset,
        id=f"e{offset}",
        timestamp_ms=5,
        payload=payload,
        **more,
    )


def job(
    offset: int = 0, payload: bytes = b"x", *, tries: int = 1, lane: Any = None
) -> Job:
    made = event(offset, payload, key=lane if isinstance(lane, bytes) else None)
    return Job(made, offset, tries, lane)


def handler_of(
    function: Callable[..., Any], topic: Topic[Any] | str = "t", **options: Any
) -> Handler:
    return Handler.of(topic, function, HandlerOptions(**options))


class FakeChannel:
    """Keeps what a runner says."""

    def __init__(self) -> None:
        self.runner: Runner
        self.finished: list[int] = []
        self.intents: list[Intent] = []
        self.refused: list[tuple[int, Failure, bool]] = []
        self.back: list[int] = []
        self.gone: set[int] = set()
        self.woken = 0
        self.closed = False

    def finish(self, jobs: list[Job], intents: list[Intent]) -> None:
        self.finished += [one.offset for one in jobs]
        self.intents += intents
        if intents:
            self.runner.finished(jobs)

    def refuse(self, job: Job, failure: Failure, *, final: bool) -> bool:
        self.refused.append((job.offset, failure, final))
        return False

    def put_back(self, jobs: list[Job]) -> None:
        self.back += [one.offset for one in jobs]

    def wake(self) -> None:
        self.woken += 1

    def owes(self, offset: int) -> bool:
        return offset not in self.gone

    async def close(self) -> None:
        self.closed = True


class AllKnown:
    """A book that every topic is in."""

    def knows(self, topic: Topic[Any]) -> bool:
        return True

    async def add(self, topic: Topic[Any]) -> None:
        raise AssertionError("known")


class Stage:
    """A runner with a fake channel and a clock that stands still."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.clock = ManualClock()
        self.channel = FakeChannel()
        handler = handler_of(function, **options)
        loop = asyncio.get_running_loop()
        self.runner = Runner(handler, "me", self.clock, loop, AllKnown())
        self.runner.channel = self.channel
        self.channel.runner = self.runner

    def tick(self, seconds: float = 0.0) -> None:
        self.clock.advance(seconds)
        self.runner.tick(self.clock.now_s())

    async def idle(self) -> None:
        """Return when nothing is at hand; threads have a minute for it."""
        await until(lambda: self.runner.idle)


async def turns(count: int = 10) -> None:
    """Let the loop turn a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(done: Callable[[], bool]) -> None:
    """Return when something is so that nobody tells of; fail if that takes long."""
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.001)


class HeldSyncs:
    """Stands in for the thread that syncs, and waits until it is told to go on."""

    def __init__(self, engine: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._held: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self.holding = True
        engine._syncer.stop()
        engine._syncer = self
        engine._pace = SyncPace(0)  # so that all commits come here

    def submit(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        self._held.append((work, done))
        if not self.holding:
            self.go_on()

    def go_on(self) -> None:
        """Do what was held, and hold nothing more."""
        self.holding = False
        held, self._held = self._held, []
        for work, done in held:
            work()
            self._loop.call_soon(done)

    @property
    def busy(self) -> bool:
        return bool(self._held)

    def stop(self) -> None:
        """Nothing to end."""
