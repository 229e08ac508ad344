from __future__ import annotations

import asyncio

from penstock.http.notifier import Notifier
from tests.unit.server.scene import run


def test_whoever_waits_wakes_up_once_however_often_it_rings() -> None:
    async def scene() -> None:
        notifier = Notifier()
        waiting = asyncio.create_task(notifier.wait(60))
        await asyncio.sleep(0)

        for _ in range(5):
            notifier.notify()

        assert await waiting is True
        assert await notifier.wait(0) is True  # it rang again meanwhile
        assert await notifier.wait(0) is False

    run(scene())


def test_a_ring_that_nobody_heard_is_kept_for_the_next() -> None:
    async def scene() -> None:
        notifier = Notifier()

        notifier.notify()

        assert await notifier.wait(60) is True
        assert await notifier.wait(0.001) is False

    run(scene())


def test_everybody_who_waits_is_woken() -> None:
    async def scene() -> None:
        notifier = Notifier()
        waiting = [asyncio.create_task(notifier.wait(60)) for _ in range(3)]
        await asyncio.sleep(0)

        notifier.notify()

        assert await asyncio.gather(*waiting) == [True] * 3

    run(scene())


def test_who_stops_waiting_is_forgotten() -> None:
    async def scene() -> None:
        notifier = Notifier()
        waiting = asyncio.create_task(notifier.wait(60))
        await asyncio.sleep(0)

        waiting.cancel()
        await asyncio.wait({waiting})
        notifier.notify()

        assert await notifier.wait(0) is True  # nobody else has heard it

    run(scene())
