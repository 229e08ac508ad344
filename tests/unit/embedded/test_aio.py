"""What every broker with handlers does is in tests/contract; here is the rest."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock import desk
from penstock.embedded import Context, Domain, Event, Topic
from penstock.errors import (
    BrokerClosed,
    IncompatibleSchema,
    InvalidPayload,
    StartedTwice,
    WrongOrder,
)
from penstock.testing import CrashDisk


class Order(msgspec.Struct):
    total: int


def go(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(bounded())


def opened() -> penstock.embedded.Opening:
    return penstock.open("/data", files=CrashDisk(), name="me")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_goes_on_until_a_signal(tmp_path: Path, number: int) -> None:
    async def run() -> None:
        domain, seen = Domain("a"), []

        @domain.on("t")
        async def handle(event: Event[bytes]) -> None:
            seen.append(event.payload)
            os.kill(os.getpid(), number)

        before = signal.getsignal(number)
        async with opened() as broker:
            await broker.publish("t", b"x")
            await broker.run(domain)

        assert seen == [b"x"]
        assert signal.getsignal(number) == before

    go(run)


def test_a_handler_may_stop_the_program_and_publish_by_itself() -> None:
    async def run() -> None:
        domain = Domain("a")

        async with opened() as broker:

            @domain.on("t")
            async def handle(event: Event[bytes]) -> None:
                assert (await broker.publish("u", b"y")).offset == 0
                broker.stop()

            await broker.publish("t", b"x")
            await broker.run(domain)

    go(run)


def test_questions_are_verbs_or_plans() -> None:
    async def run() -> None:
        async with opened() as broker:
            await broker.publish("t", b"x")
            rows = await broker.ask(desk.topics())
            view = await broker.ask("topics")

            assert [row.name for row in rows] == ["t"]
            assert msgspec.to_builtins(view)["topics"][0]["name"] == "t"

    go(run)


def test_the_schema_of_a_topic_is_known_once_it_is_used() -> None:
    async def run() -> None:
        topic = Topic("orders", Order)
        async with opened() as broker:
            await broker.publish(topic, Order(1))
            await broker.publish(topic, Order(2))
            view = msgspec.to_builtins(await broker.ask("schemas.show", topic="orders"))

            assert "total" in str(view)
            with pytest.raises(InvalidPayload):
                await broker.publish("orders", b'{"total": "x"}')

    go(run)


def test_a_type_that_was_changed_too_much_is_refused() -> None:
    async def run() -> None:
        class Changed(msgspec.Struct):
            sum: str

        domain, seen = Domain("a"), []

        @domain.on(Topic("orders", Changed))
        async def handle(event: Event[Changed]) -> None:
            seen.append(event)

        async with opened() as broker:
            await broker.publish(Topic("orders", Order), Order(1))
            with pytest.raises(IncompatibleSchema):
                await broker.publish(Topic("orders", Changed), Changed("x"))
            with pytest.raises(IncompatibleSchema):
                await broker.start(domain)

    go(run)


def test_an_order_that_the_subscription_does_not_have_is_refused() -> None:
    async def run() -> None:
        disk = CrashDisk()
        first, second = Domain("a"), Domain("a")

        @first.on("t", order="priority")
        async def early(event: Event[bytes]) -> None: ...

        @second.on("t")
        async def late(event: Event[bytes]) -> None: ...

        async with penstock.open("/data", files=disk) as broker:
            await broker.start(first)
        async with penstock.open("/data", files=disk) as broker:
            with pytest.raises(WrongOrder):
                await broker.start(second)

    go(run)


def test_what_handlers_publish_while_others_are_settled_is_waited_for() -> None:
    async def run() -> None:
        domain, depth = Domain("a"), 0

        @domain.on("t")
        async def handle(event: Event[bytes], context: Context) -> None:
            nonlocal depth
            depth += 1
            if depth < 50:
                context.publish("t", b"again")

        async with opened() as broker:
            await broker.start(domain)
            await broker.publish("t", b"first")
            await broker.wait_until_settled(60)

            assert depth == 50

    go(run)


def test_a_topic_that_was_deleted_gets_its_schema_again() -> None:
    async def run() -> None:
        topic = Topic("orders", Order)
        async with opened() as broker:
            await broker.publish(topic, Order(1))
            await broker.ask("topics.delete", name="orders")
            await broker.publish(topic, Order(2))

            with pytest.raises(InvalidPayload):
                await broker.publish("orders", b"anything")

    go(run)


def test_domains_are_started_all_or_none() -> None:
    async def run() -> None:
        class Changed(msgspec.Struct):
            total: str

        good, bad, seen = Domain("good"), Domain("bad"), []

        @good.on("t")
        async def handle(event: Event[bytes]) -> None:
            seen.append(event.offset)

        @bad.on("t")
        async def other(event: Event[bytes]) -> None:
            seen.append(-1)

        @bad.on(Topic("orders", Changed))
        async def misled(event: Event[Changed]) -> None: ...

        async with opened() as broker:
            await broker.publish(Topic("orders", Order), Order(1))
            for _ in range(2):
                with pytest.raises(IncompatibleSchema):
                    await broker.start(good, bad)
            await broker.publish("t", b"x")
            await broker.wait_until_settled(60)
            before = list(seen)
            await broker.start(good)
            with pytest.raises(StartedTwice):
                await broker.start(good)
            await broker.wait_until_settled(60)

            assert (before, seen) == ([], [0])

    go(run)


def test_what_was_subscribed_is_left_again_if_another_cannot_be() -> None:
    async def run() -> None:
        disk = CrashDisk()
        first, second, seen = Domain("a"), Domain("a"), []

        @first.on("t", order="priority")
        async def early(event: Event[bytes]) -> None: ...

        @second.on("s")
        async def fine(event: Event[bytes]) -> None:
            seen.append(event.offset)

        @second.on("t")
        async def late(event: Event[bytes]) -> None: ...

        async with penstock.open("/data", files=disk) as broker:
            await broker.start(first)
        async with penstock.open("/data", files=disk) as broker:
            with pytest.raises(WrongOrder):
                await broker.start(second)
            await broker.publish("s", b"x")
            await broker.wait_until_settled(60)
            rows = await broker.ask(desk.subscriptions())

            assert seen == []
            assert {row.topic: row.consumers for row in rows} == {"s": 0, "t": 0}

    go(run)


def test_orders_at_the_desk_are_given_by_the_program() -> None:
    async def run() -> None:
        domain = Domain("a")

        @domain.on("t", tries=1)
        async def handle(event: Event[bytes]) -> None:
            raise ValueError

        async with opened() as broker:
            await broker.start(domain)
            await broker.publish("t", b"x")
            await broker.wait_until_settled(60)
            await broker.ask(desk.republish_all())
            await broker.wait_until_settled(60)
            await broker.ask(desk.drop_all(reason="old", by="ada"))

            done = {one.action: one.by for one in await broker.ask(desk.audit())}
            assert done == {"republished": "me", "dropped": "ada"}

    go(run)


def test_a_closed_broker_takes_and_answers_nothing() -> None:
    async def run() -> None:
        async with opened() as broker:
            await broker.publish("t", b"x")

        for call in (
            lambda: broker.publish("t", b"y"),
            lambda: broker.publish_many("t", [b"y"]),
            lambda: broker.start(Domain("a")),
            lambda: broker.ask("topics"),
            lambda: broker.ask(desk.topics()),
            broker.wait_until_settled,
        ):
            with pytest.raises(BrokerClosed):
                await call()
        await broker.close()

    go(run)


def test_handlers_that_run_may_publish_while_the_broker_closes() -> None:
    async def run() -> None:
        domain, disk = Domain("a"), CrashDisk()
        begun, go_on = asyncio.Event(), asyncio.Event()
        async with penstock.open("/data", files=disk) as broker:

            @domain.on("t")
            async def handle(event: Event[bytes]) -> None:
                begun.set()
                await go_on.wait()
                await broker.publish("u", b"last")

            await broker.start(domain)
            await broker.publish("t", b"x")
            await begun.wait()
            closing = asyncio.create_task(broker.close())
            await asyncio.sleep(0)
            with pytest.raises(BrokerClosed):
                await broker.start(Domain("b"))
            go_on.set()
            await closing

        async with penstock.open("/data", files=disk) as broker:
            rows = await broker.ask(desk.topics())
            assert {row.name: row.events for row in rows} == {"t": 1, "u": 1}

    go(run)


def test_publishers_that_do_not_stop_do_not_hold_up_the_end() -> None:
    async def run() -> None:
        stored = refused = 0

        async def publish() -> None:
            nonlocal stored, refused
            while True:
                try:
                    await broker.publish("t", b"x")
                    stored += 1
                    some.set()
                except BrokerClosed:
                    refused += 1
                    return

        disk, some = CrashDisk(), asyncio.Event()
        async with penstock.open("/data", files=disk) as broker:
            tasks = [asyncio.create_task(publish()) for _ in range(8)]
            await some.wait()
        await asyncio.gather(*tasks)

        async with penstock.open("/data", files=disk) as broker:
            [row] = await broker.ask(desk.topics())
            assert (row.events, refused) == (stored, 8)

    go(run)
