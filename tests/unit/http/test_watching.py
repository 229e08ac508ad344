from __future__ import annotations

import asyncio
from typing import Any

from penstock.http.notifier import Notifier
from penstock.http.opened import Guest
from penstock.http.watching import watched
from tests.unit.server.scene import run


class Client:
    def __init__(self) -> None:
        self.coming: asyncio.Queue[Any] = asyncio.Queue()
        self.reads = asyncio.Event()

    async def receive(self) -> Any:
        return await self.coming.get()

    async def send(self, message: Any) -> None:
        await self.reads.wait()


def guest() -> Guest:
    return Guest(lambda: True)


def test_a_client_that_goes_rings() -> None:
    async def scene() -> None:
        client, notifier = Client(), Notifier()
        async with watched(client.receive, guest(), notifier) as watch:
            client.coming.put_nowait({"type": "http.request", "body": b""})
            client.coming.put_nowait({"type": "http.disconnect"})

            assert await notifier.wait(10)
            assert watch.gone and watch.over

    run(scene())


def test_a_server_that_ends_rings() -> None:
    async def scene() -> None:
        client, notifier, one = Client(), Notifier(), guest()
        async with watched(client.receive, one, notifier) as watch:
            assert (watch.gone, watch.over) == (False, False)

            one.ended.set()

            assert await notifier.wait(10)
            assert (watch.gone, watch.over) == (False, True)

    run(scene())


def test_who_does_not_read_counts_as_gone() -> None:
    async def scene() -> None:
        client = Client()
        async with watched(client.receive, guest()) as watch:
            await watch.write(client.send, b"x", 0.01)

            assert watch.gone

    run(scene())


def test_who_reads_is_still_there_and_nothing_is_left_behind() -> None:
    async def scene() -> None:
        client = Client()
        client.reads.set()
        before = len(asyncio.all_tasks())
        async with watched(client.receive, guest()) as watch:
            await watch.write(client.send, b"x", 10)
            assert not watch.gone
        await asyncio.sleep(0)

        assert len(asyncio.all_tasks()) == before

    run(scene())


def test_a_pause_ends_with_its_reason() -> None:
    async def scene() -> None:
        client = Client()
        async with watched(client.receive, guest()) as watch:
            await watch.pause(0)
            await watch.pause(0.001)
            assert not watch.over

            client.coming.put_nowait({"type": "http.disconnect"})
            await watch.pause(60)

            assert watch.gone

    run(scene())
