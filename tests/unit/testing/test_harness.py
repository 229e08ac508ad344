from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Domain, Event, desk
from penstock.errors import PenstockError, WriteFailed
from penstock.testing import AsyncHarness, Harness, InjectedFault
from tests.unit.testing.shop import Order, Payment, billing, orders, payments, till

Test = Callable[[AsyncHarness], Coroutine[Any, Any, None]]


@pytest.fixture(params=["memory", "disk"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Test], None]:
    """Runs a test with a harness, in memory and on disk."""

    def run_it(test: Test) -> None:
        async def whole() -> None:
            path = None if request.param == "memory" else tmp_path / "data"
            async with Harness(path) as broker:
                await test(broker)

        asyncio.run(whole())

    return run_it


def test_events_go_through_the_handlers(run: Callable[[Test], None]) -> None:
    async def test(broker: AsyncHarness) -> None:
        seen: list[Payment] = []
        await broker.start(billing(), till(seen))

        stored = await broker.publish(orders, Order(3), key=b"k")
        await broker.wait_until_settled()

        assert seen == [Payment(3)]
        [paid] = broker.events(payments)
        assert (paid.payload, paid.parent) == (Payment(3), stored.id)
        assert (broker.handled("billing"), broker.handled("till", payments)) == (1, 1)
        assert (broker.handled("till", orders), broker.failed("till")) == (0, 0)

    run(test)


def test_a_handler_fails_as_often_as_said(run: Callable[[Test], None]) -> None:
    async def test(broker: AsyncHarness) -> None:
        domain = billing()
        await broker.start(domain)

        broker.fail(domain, orders, times=2, error=KeyError("planned"))
        await broker.publish(orders, Order(3))
        await broker.wait_until_settled()

        assert [one.kind for one in broker.errors()] == ["KeyError", "KeyError"]
        assert (broker.failed(domain), broker.handled(domain, orders)) == (2, 1)
        assert broker.dead_letters() == []

    run(test)


def test_a_handler_that_always_fails_makes_a_dead_letter(
    run: Callable[[Test], None],
) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.start(billing(tries=3))
        broker.fail("billing", "orders", times=None)

        await broker.publish(orders, Order(3))
        await broker.wait_until_settled()

        [letter] = broker.dead_letters()
        assert (letter.kind, letter.tries) == (InjectedFault.__name__, 3)

        broker.heal()
        await broker.ask(desk.republish_all(desk.Filter(subscriber="billing")))
        await broker.wait_until_settled()

        assert broker.dead_letters() == []
        assert broker.handled("billing") == 1

    run(test)


@pytest.mark.parametrize("seconds", [1.0, 100.0])
def test_a_slow_handler_takes_virtual_time(seconds: float) -> None:
    async def test() -> None:
        async with Harness() as broker:
            seen: list[Payment] = []
            await broker.start(till(seen, timeout_s=10.0, backoff_s=0.0))
            broker.slow("till", payments, seconds)
            begin_s = broker.clock.now_s()

            await broker.publish(payments, Payment(1))
            await broker.wait_until_settled()

            expected = ["Timeout"] if seconds > 10 else []
            assert [one.kind for one in broker.errors()] == expected
            assert broker.clock.now_s() >= begin_s + min(seconds, 10.0)
            assert broker.handled("till") == 1

    asyncio.run(test())


def test_a_full_disk_confirms_nothing(run: Callable[[Test], None]) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.start(billing())
        broker.disk.fill()

        for _ in range(2):
            with pytest.raises(WriteFailed):
                await broker.publish(orders, Order(1))
        assert broker.events(orders) == []

        broker.disk.heal()
        await broker.publish(orders, Order(2))
        await broker.wait_until_settled()
        assert [one.payload.total for one in broker.events(payments)] == [2]

    run(test)


def test_a_disk_that_is_full_for_a_moment_costs_nothing_that_was_confirmed(
    run: Callable[[Test], None],
) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.start(billing())
        await broker.publish_many(orders, [Order(total) for total in range(5)])

        broker.disk.fill(times=2)
        await broker.wait_until_settled()

        paid = [one.payload.total for one in broker.events(payments)]
        assert sorted(paid) == list(range(5))

    run(test)


def test_a_sync_that_fails_is_a_publish_that_fails(
    run: Callable[[Test], None],
) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.publish(orders, Order(1))
        broker.disk.fail_syncs(times=1)

        with pytest.raises(PenstockError):
            await broker.publish(orders, Order(2))

        await broker.publish(orders, Order(3))
        assert [one.payload.total for one in broker.events(orders)] == [1, 3]

    run(test)


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_loses_nothing_that_was_confirmed(seed: int) -> None:
    async def test() -> None:
        async with Harness() as broker:
            await broker.start(billing(backoff_s=60.0))
            broker.fail("billing", orders, times=2)
            await broker.publish_many(orders, [Order(total) for total in range(5)])
            await broker.advance(1)

            await broker.crash(seed)
            await broker.wait_until_settled()

            paid = sorted(one.payload.total for one in broker.events(payments))
            assert paid == list(range(5)), seed
            assert len(broker.events(orders)) == 5

    asyncio.run(test())


def test_a_crash_in_the_middle_of_a_handler_is_a_try(
    run: Callable[[Test], None],
) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.start(billing(timeout_s=100.0))
        await broker.publish(orders, Order(7, nap_s=60.0))
        await broker.advance(30)
        assert broker.events(payments) == []

        await broker.crash()
        await broker.wait_until_settled()

        assert [one.payload.total for one in broker.events(payments)] == [7]
        assert [one.kind for one in broker.errors()] == ["Lost"]

    run(test)


def test_a_thread_that_sleeps_does_not_go_on_after_a_crash() -> None:
    async def test() -> None:
        async with Harness() as broker:
            seen: list[Payment] = []
            await broker.start(till(seen, timeout_s=100.0))
            broker.slow("till", payments, 60.0)
            await broker.publish(payments, Payment(7))
            await broker.advance(30)

            await broker.crash()
            await broker.wait_until_settled()

            assert seen == [Payment(7)], "only who came after it has handled it"

    asyncio.run(test())


def test_counts_go_on_after_a_restart(run: Callable[[Test], None]) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.start(billing())
        broker.fail("billing", orders)
        await broker.publish(orders, Order(1))
        await broker.wait_until_settled()

        await broker.restart()
        await broker.publish(orders, Order(2))
        await broker.wait_until_settled()

        assert (broker.handled("billing"), broker.failed("billing")) == (2, 1)
        assert [one.payload.total for one in broker.events(payments)] == [1, 2]

    run(test)


def test_events_of_a_name_are_of_the_type_it_was_used_with() -> None:
    async def test() -> None:
        async with Harness() as broker:
            await broker.publish(orders, Order(1))
            await broker.publish("plain", {"a": 1})

            assert broker.events("orders")[0].payload == Order(1)
            assert broker.events("plain")[0].payload == b'{"a":1}'
            assert broker.events("nothing") == []

    asyncio.run(test())


def test_a_pause_of_a_plan_is_virtual() -> None:
    async def test() -> None:
        async with Harness() as broker:
            await broker.start(billing(tries=1))
            await broker.publish_many(orders, [Order(-1)] * 3)
            await broker.wait_until_settled()
            begin_s = broker.clock.now_s()

            plan = desk.republish_all(desk.Filter(), rate=0.001)
            await broker.ask(plan)

            assert broker.clock.now_s() > begin_s + 1000

    asyncio.run(test())


def test_handlers_of_batches_and_payloads_that_do_not_fit() -> None:
    async def test() -> None:
        domain = Domain("d")
        sizes: list[int] = []

        @domain.on_batch(orders, size=10)
        async def handle(events: list[Event[Order]], context: Context) -> None:
            sizes.append(len(events))

        async with Harness() as broker:
            await broker.publish("orders", b"no order")
            await broker.publish_many(orders, [Order(1)] * 3)

            await broker.start(domain)
            await broker.wait_until_settled()

            assert sum(sizes) == 3
            assert [one.kind for one in broker.dead_letters()] == ["UnfitPayload"]

    asyncio.run(test())


def test_a_harness_ends_while_handlers_are_in_the_middle() -> None:
    async def test() -> None:
        async with Harness() as broker:
            await broker.start(billing(), till([]))
            broker.slow("till", payments, 3.0)
            await broker.publish(payments, Payment(1))
            await broker.publish(orders, Order(1, nap_s=3.0))
            await broker.advance(1)
            broker.disk.fill()

        assert "call_at" not in vars(asyncio.get_running_loop())

    asyncio.run(test())


def test_it_is_up_with_little_work() -> None:
    """What it costs to be there: an absolute time would be noise."""

    async def test() -> None:
        async with Harness() as broker:
            assert broker.disk.calls["sync"] == 0
            assert sum(broker.disk.calls.values()) <= 12

    asyncio.run(test())


def test_a_crash_takes_accidents_of_the_disk_back(run: Callable[[Test], None]) -> None:
    async def test(broker: AsyncHarness) -> None:
        await broker.publish("t", b"x")
        broker.disk.fill()

        await broker.crash()

        await broker.publish("t", b"y")
        assert [one.payload for one in broker.events("t")] == [b"x", b"y"]

    run(test)
