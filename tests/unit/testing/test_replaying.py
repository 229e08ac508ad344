from __future__ import annotations

import asyncio
import threading
import time

import pytest

from penstock import Context, Domain, Event
from penstock.errors import InvalidHandler, UnfitPayload
from penstock.model.event import Event as RawEvent
from penstock.testing import VirtualClock, replay, replay_async
from tests.unit.testing.shop import Order, Payment, billing, orders, payments, till

RAW = RawEvent(
    topic="orders",
    offset=17,
    id="the-id",
    timestamp_ms=5,
    payload=b'{"total":3}',
    key=b"k",
    headers={"lang": "de"},
)


def test_what_would_be_published_is_returned() -> None:
    [found] = replay(billing(), orders, RAW)

    assert (found.topic, found.payload) == (payments.name, Payment(3))
    assert (found.parent, found.producer) == ("the-id", "billing")


@pytest.mark.parametrize(
    "event",
    [
        Order(-3),
        RawEvent(
            topic="orders", offset=0, id="e", timestamp_ms=0, payload=b'{"total":-3}'
        ),
        Event(topic="orders", offset=0, id="e", timestamp_ms=0, payload=Order(-3)),
    ],
)
def test_what_the_handler_raises_comes_out(event: object) -> None:
    with pytest.raises(ValueError, match="negative") as caught:
        replay(billing(), "orders", event)

    assert caught.traceback[-1].name == "charge"


def test_a_handler_that_is_not_async_runs_in_the_thread_of_the_test() -> None:
    domain = Domain("d")
    found: list[object] = []

    @domain.on("orders")
    def handle(event: Event[bytes], context: Context) -> None:
        found.extend([event.id, event.key, event.headers, context.tries])
        found.append(threading.current_thread())

    assert replay(domain, "orders", RAW, tries=4) == []

    assert found == ["the-id", b"k", {"lang": "de"}, 4, threading.current_thread()]


def test_a_handler_of_batches_gets_one_event_or_many() -> None:
    domain = Domain("d")
    sizes: list[int] = []

    @domain.on_batch(orders)
    def handle(events: list[Event[Order]]) -> None:
        sizes.append(len(events))

    replay(domain, orders, RAW)
    replay(domain, orders, [Order(1), RAW, Order(2)])

    assert sizes == [1, 3]


def test_a_payload_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UnfitPayload):
        replay(billing(), orders, b"no order")


def test_a_topic_without_a_handler_is_told_with_those_that_have_one() -> None:
    with pytest.raises(InvalidHandler, match="no handler of refunds; it has orders"):
        replay(billing(), "refunds", Order(1))


def test_a_handler_that_takes_too_long_fails() -> None:
    with pytest.raises(TimeoutError):
        replay(billing(timeout_s=0.01), orders, Order(1, nap_s=60.0))


def test_a_blocking_handler_that_took_too_long_fails() -> None:
    domain = Domain("d")

    @domain.on("t", timeout_s=0.001)
    def handle(event: Event[bytes]) -> None:
        begin_s = time.monotonic()
        while time.monotonic() - begin_s < 0.002:
            pass

    with pytest.raises(TimeoutError, match="longer than 0.001 s"):
        replay(domain, "t", b"")


def test_an_async_test_awaits_its_twin() -> None:
    seen: list[Payment] = []

    async def test() -> list[Event[Payment]]:
        await replay_async(till(seen), payments, Payment(2))
        return await replay_async(billing(), orders, Order(1))

    [found] = asyncio.run(test())

    assert (found.payload, seen) == (Payment(1), [Payment(2)])


def test_in_async_code_the_blocking_one_says_so() -> None:
    async def test() -> None:
        with pytest.raises(RuntimeError, match="replay_async"):
            replay(billing(), orders, Order(1))

    asyncio.run(test())


def test_the_time_that_is_left_is_told_by_the_clock() -> None:
    domain = Domain("d")
    clock = VirtualClock(100.0)
    left: list[float] = []

    @domain.on("t", timeout_s=7.0)
    def handle(event: Event[bytes], context: Context) -> None:
        left.extend([context.remaining_s, event.timestamp_ms])

    replay(domain, "t", b"", clock=clock)

    assert left == [7.0, 100_000]
