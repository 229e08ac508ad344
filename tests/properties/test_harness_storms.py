"""Whatever goes wrong, every event is handled, and what it publishes is there once.

Handlers of all kinds are run by a harness while they fail, hang and are slow, disks
fill up, syncs fail and power goes. In the end each event that is in its topic has its
twin in the other topic, once, or is a dead letter; none that was confirmed is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from penstock import Context, Domain, Event, Topic
from penstock.embedded.options import HandlerSettings
from penstock.errors import WriteFailed
from penstock.testing import AsyncHarness, Harness
from tests.effort import DEEP

numbers = Topic("numbers", int)
twins = Topic("twins", int)

# With these a lane once waited for ever: for an event that had no room to come back,
# and for one that was to be sent after another, which waited behind it in the lane.
LANES = [350, 97, 260]


class Storm:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._published = 0
        self.confirmed: set[int] = set()
        self.domain = self._domain()

    async def run(self, broker: AsyncHarness, steps: int) -> None:
        acts: list[Callable[[AsyncHarness], Awaitable[None]]] = [
            *[self._publish] * 3,
            self._mishap,
            self._break_disk,
            self._pass_time,
            self._end,
        ]
        await broker.start(self.domain)
        for _ in range(steps):
            await self._random.choice(acts)(broker)
        broker.heal()
        await broker.wait_until_settled()

    def _domain(self) -> Domain:
        choice = self._random.choice
        domain = Domain("d")
        options: HandlerSettings = {
            "order": choice(["parallel", "key", "strict", "priority"]),
            "concurrency": choice([1, 2, 16]),
            "tries": choice([1, 2, 5]),
            "timeout_s": 10.0,
            "backoff_s": choice([0.0, 1.0, 60.0]),
        }

        async def handle(event: Event[int], context: Context) -> None:
            if event.payload % 3 == 0:
                await asyncio.sleep(event.payload % 5)
            handle_blocking(event, context)

        def handle_blocking(event: Event[int], context: Context) -> None:
            if event.payload % 13 == 0:
                raise ValueError("unlucky")
            context.publish(twins, event.payload)

        def handle_batch(events: list[Event[int]], context: Context) -> None:
            for event in events:
                handle_blocking(event, context)

        kind = choice(["async", "async", "blocking", "batch"])
        if kind == "batch" and options["order"] in ("parallel", "priority"):
            domain.on_batch(numbers, size=7, **options)(handle_batch)
        elif kind == "async":
            domain.on(numbers, **options)(handle)
        else:
            domain.on(numbers, **options)(handle_blocking)
        return domain

    async def _publish(self, broker: AsyncHarness) -> None:
        for _ in range(self._random.choice([1, 3, 20])):
            self._published += 1
            number = self._published
            try:
                key = b"%d" % (number % 3)
                await broker.publish(numbers, number, key=key, priority=number % 4)
                self.confirmed.add(number)
            except WriteFailed:
                continue

    async def _mishap(self, broker: AsyncHarness) -> None:
        times = self._random.choice([1, 3])
        if self._random.random() < 0.5:
            broker.fail(self.domain, numbers, times=times)
        else:
            seconds = self._random.choice([1.0, 30.0])
            broker.slow(self.domain, numbers, seconds, times=times)

    async def _break_disk(self, broker: AsyncHarness) -> None:
        times = self._random.choice([1, 2, 5])
        if self._random.random() < 0.5:
            broker.disk.fill(times)
        else:
            broker.disk.fail_syncs(times)

    async def _pass_time(self, broker: AsyncHarness) -> None:
        if self._random.random() < 0.3:
            await broker.wait_until_settled()
        else:
            await broker.advance(self._random.choice([0.0, 0.5, 20.0]))

    async def _end(self, broker: AsyncHarness) -> None:
        if self._random.random() < 0.6:
            await broker.crash(self._random.randrange(1000))
        else:
            await broker.restart()


@pytest.mark.parametrize("seed", [*LANES, *range(500 if DEEP else 15)])
def test_every_event_is_handled_once_or_a_dead_letter(seed: int) -> None:
    async def test() -> None:
        storm = Storm(seed)
        async with Harness() as broker:
            await storm.run(broker, steps=12)

            there = [one.payload for one in broker.events(numbers)]
            done = [one.payload for one in broker.events(twins)]
            for letter in broker.dead_letters():
                assert letter.event is not None, seed
                done.append(int(letter.event.payload))
        assert sorted(done) == there, seed
        assert storm.confirmed <= set(there), seed

    asyncio.run(test())
