"""Time passes when nothing else can happen, and never because real time did."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest

from penstock import Domain, Event
from penstock.embedded.local import LocalLink
from penstock.errors import NotSettled
from penstock.testing import Harness, pace
from tests.unit.testing.shop import Order, Payment, billing, orders, payments, till

DAY_S = 86_400.0


def test_settling_jumps_over_every_backoff() -> None:
    with Harness() as broker:
        broker.start(billing(tries=5, backoff_s=600.0, max_backoff_s=DAY_S, jitter=0.0))
        broker.publish(orders, Order(-1))
        begin_s = broker.clock.now_s()

        broker.wait_until_settled()

        at_s = [one.at_ms / 1000 - begin_s for one in broker.errors()]
        waits = [round(after - before) for before, after in pairwise(at_s)]
        assert waits == [600, 1200, 2400, 4800]
        assert [one.tries for one in broker.dead_letters()] == [5]


def test_time_stands_still_while_nothing_waits_for_it() -> None:
    seen: list[Payment] = []
    with Harness() as broker:
        broker.start(billing(), till(seen))
        begin_s = broker.clock.now_s()

        broker.publish_many(orders, [Order(total) for total in range(100)])
        broker.wait_until_settled()

        assert sorted(one.total for one in seen) == list(range(100))
        assert broker.clock.now_s() == begin_s


def test_a_nap_of_a_handler_takes_virtual_time_only() -> None:
    with Harness() as broker:
        broker.start(billing(timeout_s=2 * DAY_S))
        begin_s = broker.clock.now_s()

        broker.publish(orders, Order(1, nap_s=DAY_S))
        broker.wait_until_settled()

        assert broker.clock.now_s() - begin_s == pytest.approx(DAY_S)
        assert broker.handled("billing") == 1


def test_a_handler_that_naps_too_long_runs_out_of_time() -> None:
    with Harness() as broker:
        broker.start(billing(tries=2, timeout_s=30.0))
        broker.publish(orders, Order(1, nap_s=DAY_S))

        broker.wait_until_settled()

        kinds = [(one.kind, one.tries) for one in broker.dead_letters()]
        assert kinds == [("Timeout", 2)]


def test_a_timeout_is_reached_by_advancing() -> None:
    with Harness() as broker:
        broker.start(billing(timeout_s=30.0))
        broker.publish(orders, Order(1, nap_s=DAY_S))

        broker.advance(29.0)
        assert broker.errors() == []
        broker.advance(1.1)

        assert [one.kind for one in broker.errors()] == ["Timeout"]


def test_advancing_does_what_is_due_and_nothing_that_is_not() -> None:
    with Harness() as broker:
        broker.start(billing(backoff_s=60.0, backoff_factor=1.0, jitter=0.0))
        broker.publish(orders, Order(-1))
        failed = []

        for seconds in (0, 59, 2, 60, 3600):
            broker.advance(seconds)
            failed.append(broker.failed("billing"))

        assert failed == [1, 1, 2, 3, 5]


def test_a_handler_that_waits_for_something_real_gets_it() -> None:
    """It reads from a socket, and there it comes in real time: the clock waits."""
    domain = Domain("d")

    @domain.on("t")
    async def handle(event: Event[bytes]) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        thread = threading.Thread(
            target=lambda: loop.call_soon_threadsafe(ended.set), daemon=True
        )
        thread.start()
        await ended.wait()
        thread.join()

    with Harness(patience_s=60.0) as broker:
        broker.start(domain)
        begin_s = broker.clock.now_s()

        broker.publish("t", b"")
        broker.wait_until_settled()

        assert broker.handled(domain) == 1
        assert broker.clock.now_s() == begin_s


@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_that_hangs_runs_out_of_time(*, is_async: bool) -> None:
    domain = Domain("d")
    let_go = threading.Event()
    if is_async:

        @domain.on("t", tries=1)
        async def handle(event: Event[bytes]) -> None:
            await asyncio.Event().wait()
    else:

        @domain.on("t", tries=1)
        def handle_blocking(event: Event[bytes]) -> None:
            let_go.wait()

    with Harness(patience_s=0.01) as broker:
        broker.start(domain)
        broker.publish("t", b"")

        broker.wait_until_settled()

        assert [one.kind for one in broker.dead_letters()] == ["Timeout"]
        let_go.set()


def test_who_waits_behind_a_sleeper_does_not_keep_time_from_passing() -> None:
    seen: list[Payment] = []
    with Harness(patience_s=60.0) as broker:
        broker.start(till(seen, concurrency=1))
        broker.slow("till", payments, 2.0, times=2)
        broker.publish_many(payments, [Payment(1), Payment(2), Payment(3)])

        broker.wait_until_settled()

        assert [one.total for one in seen] == [1, 2, 3]


def test_a_time_limit_is_one_of_virtual_time() -> None:
    with Harness() as broker:
        broker.start(billing(backoff_s=60.0, jitter=0.0))
        broker.publish(orders, Order(-1))

        with pytest.raises(NotSettled) as caught:
            broker.wait_until_settled(timeout_s=70.0)

        assert caught.value.left == ["billing of orders"]
        assert broker.failed("billing") == 2
        broker.wait_until_settled()


def test_waiting_for_what_will_never_happen_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(*_: object) -> bool:
        return False

    with Harness() as broker:
        broker.start(billing())
        monkeypatch.setattr(LocalLink, "settled", never)

        with pytest.raises(NotSettled):
            broker.wait_until_settled()


def test_handlers_that_keep_each_other_busy_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "MAX_CALLS", 50)
    domain = Domain("d")

    @domain.on("t")
    async def handle(event, context):
        context.publish("t", b"again")

    with Harness() as broker:
        broker.start(domain)
        broker.publish("t", b"")

        with pytest.raises(NotSettled):
            broker.wait_until_settled()


def test_a_clock_that_somebody_else_moved_counts() -> None:
    with Harness() as broker:
        broker.start(billing(backoff_s=60.0, jitter=0.0))
        broker.fail("billing", orders)
        broker.publish(orders, Order(1))
        broker.advance(0)

        broker.clock.advance(61)
        broker.advance(0)

        assert broker.handled("billing") == 1
