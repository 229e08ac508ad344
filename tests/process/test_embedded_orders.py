"""The shop is killed again and again; every chain is whole, and no step came twice."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import pytest

from penstock.log import verify
from tests.effort import DEEP, effort
from tests.process.embedded_process import events_of, program
from tests.serving import serving

pytestmark = pytest.mark.slow

KILLS = effort(4, 50)
SEED = Random().getrandbits(32) if DEEP else 4
ORDERS = effort(60, 100)
# Topic: the topic of the event that is its cause, and who handles that.
STEPS = {
    "PAYMENT_SUCCESS": ("ORDER_CREATED", "PAYMENT"),
    "PRODUCTS_READY": ("ORDER_CREATED", "INVENTORY"),
    "ORDER_SHIPPING_READY": ("PAYMENT_SUCCESS", "ORDER"),
    "INVOICE_READY": ("ORDER_SHIPPING_READY", "DELIVERY"),
    "PAY_SUCCESS_MESSAGE_DELIVERED": ("ORDER_SHIPPING_READY", "NOTIFICATION"),
}


def test_every_chain_is_whole_after_kills_and_no_step_came_twice(
    tmp_path: Path,
) -> None:
    data, side = tmp_path / "data", tmp_path / "side"
    random = Random(SEED)

    for kill in range(KILLS):
        # Some orders are new to every run, so that there is always work to break.
        orders = ORDERS * (kill + 1) // KILLS
        with program("embedded_orders", data, side, orders, SEED + kill) as shop:
            # Now and then while it is still opening, or has not begun to.
            if random.random() < 0.8:
                assert shop.line() == "started", f"seed {SEED}, run {kill}"
            time.sleep(random.uniform(0.0, 0.6))
            shop.kill()
    with program("embedded_orders", data, side, ORDERS, SEED) as shop:
        assert shop.lines() == ["started", "settled"], f"seed {SEED}"
        assert shop.wait() == 0

    check(data, side)


def test_every_chain_is_whole_after_kills_of_the_server_and_of_the_program(
    tmp_path: Path,
) -> None:
    side, random = tmp_path / "side", Random(SEED)
    with serving(tmp_path, "--no-maze", "--no-line", "--no-json") as server:
        target = f"penstock://{server.data}"
        for kill in range(0, KILLS, 2):
            orders = ORDERS * (kill + 2) // KILLS
            with program("embedded_orders", target, side, orders, SEED + kill) as shop:
                assert shop.line() == "started", f"seed {SEED}, run {kill}"
                time.sleep(random.uniform(0.0, 0.6))
                server.kill()
                server.start()
                time.sleep(random.uniform(0.0, 0.6))
                shop.kill()
        with program("embedded_orders", target, side, ORDERS, SEED) as shop:
            assert shop.lines() == ["started", "settled"], f"seed {SEED}"
            assert shop.wait() == 0
        assert server.stop() == 0

    check(server.data, side)


def check(data: Path, side: Path) -> None:
    assert not verify(data).damages
    assert not events_of(data, "$dead-letters"), f"seed {SEED}"
    check_chains(data)
    check_runs(side)


def check_chains(data: Path) -> None:
    ids = {"ORDER_CREATED": orders_of(data)}
    for topic, (cause, producer) in STEPS.items():
        ids[topic] = {}
        for event in events_of(data, topic):
            number = msgspec.json.decode(event.payload)["order"]
            assert number not in ids[topic], f"seed {SEED}: {topic} of {number} twice"
            assert event.parent == ids[cause][number], f"seed {SEED}: {topic} {number}"
            assert event.producer == producer
            ids[topic][number] = event.id
        assert sorted(ids[topic]) == list(range(1, ORDERS + 1)), f"seed {SEED}: {topic}"


def orders_of(data: Path) -> dict[int, str]:
    events = events_of(data, "ORDER_CREATED")
    found = {msgspec.json.decode(one.payload)["number"]: one.id for one in events}
    assert found == {number: f"order-{number}" for number in range(1, ORDERS + 1)}
    assert len(events) == ORDERS, f"seed {SEED}: an order was placed twice"
    return found


def check_runs(side: Path) -> None:
    """A success may be repeated once for each kill that came before it was stored."""
    runs = Counter(tuple(line.split()) for line in side.read_text().splitlines())
    handlers = {producer for _, producer in STEPS.values()}
    assert len(runs) == len(handlers) * ORDERS
    assert max(runs.values()) <= 1 + KILLS, f"seed {SEED}: {runs.most_common(3)}"
