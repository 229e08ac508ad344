"""A program with handlers that lives, ends and lives again, on a disk that may fail.

Everything is on one event loop and decided by the seed: what handlers do, when events
are published, when time goes on, when the disk fails, when the power does.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

import penstock
from penstock.clock import ManualClock
from penstock.embedded import AsyncBroker, Context, Event, LocalOptions
from penstock.embedded.local import LocalLink
from penstock.embedded.local_broker import open_broker
from penstock.errors import PenstockError
from penstock.server.sync_pace import SyncPace
from penstock.testing import CrashDisk

PATH = "/data"
TRIES = 3
TIMEOUT_S = 2.0
PARTS = ("a", "b")


class Inline:
    """Does the work of a thread on the loop, a moment later."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def submit(self, work: Callable[[], None], done: Callable[[], None]) -> None:
        def run() -> None:
            work()
            self._loop.call_soon(done)

        self._loop.call_soon(run)

    def stop(self) -> None:
        """Nothing to end."""


class Failed(Exception):
    pass


class Lives:
    """What happened in all lives, as far as a program can know."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.disk = CrashDisk()
        self.clock = ManualClock()
        self.order = self.random.choice(["parallel", "key", "strict"])
        self.batch = self.order == "parallel" and self.random.random() < 0.3
        self.concurrency = self.random.randint(1, 4)
        self.backoff_s = self.random.choice([0.0, 0.3])
        self.confirmed: set[str] = set()
        """Ids of events whose publishers were told that they are stored."""
        self.begun: Counter[str] = Counter()
        self.overlaps: list[str] = []
        self.most = 0
        self.faults = 0
        self._running: list[Context] = []
        self._published = 0

    # The program

    def domain(self, *, calm: bool) -> penstock.Domain:
        domain = penstock.Domain("worker")
        settings: Any = {
            "order": self.order,
            "concurrency": self.concurrency,
            "tries": TRIES,
            "timeout_s": TIMEOUT_S,
            "backoff_s": self.backoff_s,
            "jitter": 0.0,
        }
        if self.batch:

            @domain.on_batch("in", size=4, **settings)
            async def handle_all(events: list[Event[int]], context: Context) -> None:
                await self._handle(events, context, calm=calm)

        else:

            @domain.on("in", **settings)
            async def handle(event: Event[int], context: Context) -> None:
                await self._handle([event], context, calm=calm)

        return domain

    async def _handle(
        self, events: list[Event[int]], context: Context, *, calm: bool
    ) -> None:
        lane = self._lane(events[0])
        # Those whose time is over are about to be cancelled, and count no more.
        running = [one for one in self._running if one.remaining_s >= 0]
        others = {self._lane(one.event) for one in running}
        if self.order != "parallel" and lane in others:
            self.overlaps.append(events[0].id)
        self._running.append(context)
        self.most = max(self.most, len(running) + 1)
        try:
            for event in events:
                self.begun[event.id] += 1
                for part in PARTS:
                    context.publish(f"out-{part}", event.payload, parent=event.id)
                await self._act(event, context, calm=calm)
        finally:
            self._running.remove(context)

    async def _act(self, event: Event[int], context: Context, *, calm: bool) -> None:
        what = Random(f"{self.seed}-{event.id}-{context.tries}").random()
        if what < 0.15:
            raise Failed(event.id)
        if what < 0.25 and not calm:
            await asyncio.Event().wait()
        if what < 0.6:
            for _ in range(int(what * 20)):
                await asyncio.sleep(0)

    def _lane(self, event: Event[int]) -> object:
        if self.order == "key":  # without one it is in nobody's way
            return event.id if event.key is None else event.key
        return None

    # A life

    async def live(self) -> None:
        """Be busy for a while, then close, or lose power."""
        link = self._open()
        broker = AsyncBroker(link)
        publishers: set[asyncio.Task[None]] = set()
        self._running = []
        try:
            await self._patiently(link, broker.start(self.domain(calm=False)))
        except PenstockError:
            self.disk.fail(None)
        for _ in range(self.random.randint(1, 30)):
            await self._step(link, broker, publishers)
        if self.random.random() < 0.4:
            self.disk.fail(None)
            closing = asyncio.create_task(broker.close(grace_s=0.0))
            while not closing.done():  # perhaps a failed commit is to be made again
                self.clock.advance(0.1)
                await asyncio.sleep(0)
            await asyncio.gather(closing, *publishers)
        else:
            survivor = self.disk.crashed(self.random)
            await self._abandon(link, publishers)
            self.disk = survivor

    async def _step(
        self, link: LocalLink, broker: AsyncBroker, publishers: set[asyncio.Task[None]]
    ) -> None:
        what = self.random.random()
        if what < 0.35:
            for _ in range(self.random.randint(1, 6)):
                publishers.add(asyncio.create_task(self._publish(broker)))
        elif what < 0.6:
            self.clock.advance(self.random.choice([0.1, 0.5, 3.0]))
            link.tick()
        elif what < 0.66:
            self.disk.fail(self._fault)
        elif what < 0.75:
            self.disk.fail(None)
        for _ in range(self.random.randint(0, 20)):
            await asyncio.sleep(0)

    async def _publish(self, broker: AsyncBroker) -> None:
        number = self._published
        self._published += 1
        key = self.random.choice([None, b"x", b"y", b"z"])
        payload: object = "unfit" if self.random.random() < 0.05 else number
        try:
            await broker.publish("in", payload, key=key, id=f"e{number}")
        except PenstockError:
            return
        self.confirmed.add(f"e{number}")

    def _fault(self, action: str, path: str) -> OSError | None:
        if action in ("write", "sync") and "journal" in path:
            self.faults += 1
            return OSError(errno.ENOSPC, "full")
        return None

    # The end

    async def settle(self) -> dict[str, Any]:
        """A last life in which nothing more is lost; what is found on the disk."""
        self.disk.fail(None)
        link = self._open()
        broker = AsyncBroker(link)
        self._running = []
        domain = self.domain(calm=True)
        found: dict[str, list[Event[Any]]] = defaultdict(list)
        reader = penstock.Domain("reader")
        for topic in ("in", *(f"out-{part}" for part in PARTS)):
            reader.on(topic, order="strict")(_flusher(found[topic]))
        await self._patiently(link, broker.start(domain, reader))
        waiting = asyncio.create_task(broker.wait_until_settled(20))
        await self._patiently(link, waiting)
        letters: Any = await broker.ask("dead-letters", limit=1000)
        rows = msgspec.to_builtins(letters)["letters"]
        await broker.close()
        return {**found, "letters": [row for row in rows if row["topic"] == "in"]}

    async def _patiently(self, link: LocalLink, work: Any) -> None:
        """Let time go on until something is done."""
        task = asyncio.ensure_future(work)
        while not task.done():
            self.clock.advance(0.1)
            link.tick()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        task.result()

    def _open(self) -> LocalLink:
        loop = asyncio.get_running_loop()
        broker = open_broker(PATH, LocalOptions(), self.clock, self.disk)
        link = LocalLink(broker, self.clock, loop)
        engine: Any = link.engine
        for name in ("_syncer", "_writer"):
            getattr(engine, name).stop()
            setattr(engine, name, Inline(loop))
        engine._pace = SyncPace(0)  # what time it takes decides nothing here
        return link

    async def _abandon(
        self, link: LocalLink, publishers: set[asyncio.Task[None]]
    ) -> None:
        for runner in link.runners:
            await runner.abandon()
        for task in publishers:
            task.cancel()
        await asyncio.gather(*publishers, return_exceptions=True)
        await link.engine.stop()
        link.broker.log.abandon()


def _flusher(kept: list[Event[Any]]) -> Callable[[Event[bytes]], Any]:
    async def keep(event: Event[bytes]) -> None:
        kept.append(event)

    return keep
