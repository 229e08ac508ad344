"""What both clients do is in tests/contract; here is what only this one does."""

from __future__ import annotations

import asyncio

from penstock.client import aio
from penstock.errors import ConnectionLost
from tests.local_server import LocalServer


def test_many_coroutines_share_a_connection(server: LocalServer) -> None:
    async def run() -> list[list[int]]:
        async with await aio.connect(server.data) as client:
            done = await asyncio.gather(
                *(client.publish("t", b"%d" % n) for n in range(50))
            )
            return [list(one) for one in done]

    offsets = asyncio.run(run())

    assert sorted(offsets) == [[n] for n in range(50)]


def test_consuming_and_publishing_go_on_together(server: LocalServer) -> None:
    async def run() -> list[bytes]:
        async with await aio.connect(server.data) as client:
            await client.publish("t", b"0")
            got = []
            async with await client.subscribe("t", "me", start="earliest") as it:
                async for delivery in it:
                    got.append(delivery.payload)
                    it.ack(delivery)
                    if len(got) == 5:
                        break
                    await client.publish("t", b"%d" % len(got))
            return got

    assert asyncio.run(run()) == [b"0", b"1", b"2", b"3", b"4"]


def test_everybody_who_waits_hears_that_the_server_went(server: LocalServer) -> None:
    async def run() -> list[object]:
        client = await aio.connect(server.data)
        await client.publish("t", b"0")
        subscriptions = [await client.subscribe("t") for _ in range(3)]
        waiting = [asyncio.create_task(one.next()) for one in subscriptions]
        await asyncio.sleep(0)
        server.stop()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        await client.close()
        return list(found)

    assert [type(one) for one in asyncio.run(run())] == [ConnectionLost] * 3


def test_a_question_that_is_given_up_disturbs_no_other(server: LocalServer) -> None:
    async def run() -> object:
        async with await aio.connect(server.data) as client:
            task = asyncio.create_task(client.ask("topics"))
            await asyncio.sleep(0)
            task.cancel()
            found = await client.ask("topics")
            assert not client._session._answers
            return found

    assert asyncio.run(run()) == {"topics": [], "more": False}
