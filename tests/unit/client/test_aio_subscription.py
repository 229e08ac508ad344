"""What both clients do is in tests/contract; here is what only this one does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.client import aio
from penstock.client.outgoing import Outgoing
from penstock.errors import ConnectionLost, ServerRefused
from penstock.model.failure import Failure
from tests.local_server import LocalServer


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


async def heard(client: aio.AsyncClient, topic: str, count: int) -> list[Any]:
    async with await client.subscribe(topic, start="earliest") as it:
        return [await it.next() for _ in range(count)]


def out(*payloads: bytes, **more: Any) -> Outgoing:
    return Outgoing.of(payloads, **more)


def test_finishing_settles_and_publishes(server: LocalServer) -> None:
    async def run() -> None:
        async with await aio.connect(server.data) as client:
            await client.publish("t", [b"0", b"1"])
            it = await client.subscribe("t", "ann", start="earliest")
            first, second = await it.next(), await it.next()

            done = await it.finish(
                [first.offset],
                {"out": out(b"a", b"b"), "more": out(b"c")},
            )
            again = await it.finish([first.offset], {"out": out(b"never")})
            await it.close()

            assert (done, again) == (True, False)
            got = await heard(client, "out", 2)
            assert [one.payload for one in got] == [b"a", b"b"]
            async with await client.subscribe("t", "ann") as back:
                assert (await back.next()).offset == second.offset

    go(run)


def test_what_is_refused_is_told_and_changes_nothing(server: LocalServer) -> None:
    async def run() -> None:
        async with await aio.connect(server.data) as client:
            await client.publish("t", b"0")
            it = await client.subscribe("t", "ann", start="earliest")
            delivery = await it.next()

            for topic, events, error in [
                ("$errors", out(b"x"), "ReservedName"),
                ("out", out(b"x", priorities=[999]), "InvalidBatch"),
                ("out", out(b"x", ids=[""]), "InvalidBatch"),
            ]:
                with pytest.raises(ServerRefused) as caught:
                    await it.finish([delivery.offset], {topic: events})
                assert caught.value.error == error
            assert await it.finish([delivery.offset], {"out": out(b"good")})
            assert [one.payload for one in await heard(client, "out", 1)] == [b"good"]

    go(run)


def test_finishing_on_a_lost_connection_is_an_error(server: LocalServer) -> None:
    async def run() -> None:
        async with await aio.connect(server.data) as client:
            await client.publish("t", b"0")
            it = await client.subscribe("t", "ann", start="earliest")
            delivery = await it.next()
            server.stop()

            with pytest.raises(ConnectionLost):
                await it.finish([delivery.offset], {"out": out(b"x")})

    go(run)


def test_a_failure_reaches_the_dead_letters_whole(server: LocalServer) -> None:
    async def run() -> None:
        async with await aio.connect(server.data) as client:
            await client.publish("t", [b"0", b"1"])
            it = await client.subscribe("t", "ann", start="earliest")
            first, second = await it.next(), await it.next()

            failure = Failure(0, 0, "ValueError", "no", "Traceback", 1.5)
            it.refuse(first.offset, failure, final=True)
            it.ack(second)
            await it.flush()
            await client.ask("settled")

            letter: Any = await client.ask("dead-letters.show", number=0)
            [told] = letter["failures"]
            assert (told["kind"], told["message"]) == ("ValueError", "no")
            assert (told["traceback"], told["duration_s"]) == ("Traceback", 1.5)
            assert letter["tries"] == 1
            await it.close()

    go(run)


def test_what_was_not_begun_is_no_try_when_it_leaves(server: LocalServer) -> None:
    async def run() -> None:
        async with await aio.connect(server.data) as client:
            await client.publish("t", [b"0", b"1", b"2"])
            it = await client.subscribe("t", "ann", start="earliest", tries=5)
            deliveries = [await it.next() for _ in range(3)]
            it.put_back([deliveries[1].offset])
            await it.close()
            await it.close()  # once more does nothing

            async with await client.subscribe("t", "ann", tries=5) as back:
                again = [await back.next() for _ in range(3)]

            found = {one.offset: one.tries for one in again}
            assert found == {0: 2, 1: 1, 2: 2}

    go(run)


def test_what_was_not_read_before_a_move_is_not_read_after_it(
    server: LocalServer,
) -> None:
    async def run() -> None:
        moves: list[str] = []
        async with await aio.connect(server.data) as client:
            await client.publish("t", [b"0", b"1", b"2"])
            it = await client.subscribe("t", "ann", start="earliest")
            it.when_moved(lambda: moves.append("moved"))
            it.ack(await it.next())

            place: dict[str, Any] = {"subscriber": "ann", "topic": "t"}
            await client.ask("subscriptions.seek", **place, start=2)
            assert (await it.next()).offset == 2
            waiting = asyncio.create_task(it.next())
            await client.ask("subscriptions.seek", **place, start=1)

            assert (await waiting).offset == 1
            assert moves == ["moved", "moved"]

    go(run)
