"""Penstock in the process, and over a URL, as programs use it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import uvloop

import penstock
from bench.embedded.player import Player, Task, Watch, publish_from_many
from bench.rounds import Sample, payloads, scratch
from penstock.broker.broker import Broker
from penstock.embedded.aio import AsyncBroker
from penstock.embedded.options import MAX_AT_HAND
from penstock.gateway.maze import MazeState
from penstock.log import Log
from penstock.model.policy import Policy

TOPIC = "events"
FILL_EVENTS = 1000


async def fill(broker: AsyncBroker, task: Task, topic: str) -> None:
    events = payloads(task.events, task.payload_bytes)
    for first in range(0, len(events), FILL_EVENTS):
        await broker.publish_many(topic, events[first : first + FILL_EVENTS])


def domain(name: str, topic: str, task: Task) -> penstock.Domain:
    """An empty handler of the kind that is asked for."""
    found = penstock.Domain(name)
    kind = task.options.get("handler", "async")
    concurrency = int(task.options.get("concurrency", 16))
    if kind == "async":

        @found.on(topic, concurrency=concurrency)
        async def handle(event: penstock.Event[bytes]) -> None:
            pass

    elif kind == "sync":

        @found.on(topic, concurrency=concurrency)
        def handle_in_thread(event: penstock.Event[bytes]) -> None:
            pass

    else:

        @found.on_batch(topic, size=int(task.options["batch"]))
        async def handle_batch(events: list[penstock.Event[bytes]]) -> None:
            pass

    return found


class Penstock(Player):
    """A broker in this process unless there is a server."""

    def target(self, folder: Path) -> str:
        port = self.task.place.ports.get("native")
        return str(folder) if port is None else f"penstock://127.0.0.1:{port}"


class Publish(Penstock):
    def play(self) -> Sample:
        with scratch(self.directory) as folder:
            return uvloop.run(self._play(self.target(folder)))

    async def _play(self, target: str) -> Sample:
        events = payloads(self.task.events, self.task.payload_bytes)
        async with penstock.open(target) as broker:
            await broker.publish(TOPIC, b"the topic is made")
            watch = Watch(self.task)
            await publish_from_many(
                lambda payload: broker.publish(TOPIC, payload),
                events,
                self.task.publishers,
            )
            return watch.stop()


class Handle(Penstock):
    def play(self) -> Sample:
        with scratch(self.directory) as folder:
            return uvloop.run(self._play(self.target(folder)))

    async def _play(self, target: str) -> Sample:
        topic = f"{TOPIC}-{self.turn}"
        async with penstock.open(target) as broker:
            await fill(broker, self.task, topic)
            watch = Watch(self.task)
            await broker.start(domain("handler", topic, self.task))
            await broker.wait_until_settled()
            return watch.stop()


class Replay(Penstock):
    """A new subscriber gets the whole history, each turn another one."""

    def prepare(self) -> None:
        uvloop.run(self._fill())

    def play(self) -> Sample:
        return uvloop.run(self._play())

    async def _fill(self) -> None:
        async with penstock.open(self.directory / "data") as broker:
            await fill(broker, self.task, TOPIC)

    async def _play(self) -> Sample:
        async with penstock.open(self.directory / "data") as broker:
            watch = Watch(self.task)
            await broker.start(domain(f"replay-{self.turn}", TOPIC, self.task))
            await broker.wait_until_settled()
            return watch.stop()


class LogOnly(Penstock):
    """What handling costs without handlers: take, read, settle, commit, in a loop.

    As many events at a time as a handler may have at hand, and one commit for each of
    those portions, as it is beside a fast handler. Tries are counted as well.
    """

    def play(self) -> Sample:
        with scratch(self.directory) as folder:
            uvloop.run(self._fill(folder))
            return self._play(folder)

    async def _fill(self, folder: Path) -> None:
        async with penstock.open(folder) as broker:
            await fill(broker, self.task, TOPIC)

    def _play(self, folder: Path) -> Sample:
        open_log = partial(Log.open, folder)
        with Broker(open_log, kept=[MazeState()]) as broker:
            watch = Watch(self.task)
            policy = Policy(window=MAX_AT_HAND)
            subscription = broker.subscribe("handler", TOPIC, policy, "earliest")
            consumer = broker.attach(subscription, _Outlet())
            while portions := broker.take(consumer, time.time(), MAX_AT_HAND):
                subscription.note_tries()
                offsets: list[int] = []
                for one in portions:
                    page, lo, hi = one.page, one.lo, one.hi
                    assert len(page.payloads[lo:hi]) == len(page.ids[lo:hi])
                    offsets += range(page.base + lo, page.base + hi)
                subscription.settle_all(offsets, consumer)
                broker.log.commit()
            assert subscription.drained
            return watch.stop()


class _Outlet:
    """Nobody is woken: the loop above asks by itself."""

    def released(self, consumer: object, owed: object) -> None: ...

    def moved(self, consumer: object) -> None: ...

    def ended(self, consumer: object, reason: str) -> None: ...
