"""A shop in one process: ``python -m examples.orders DIRECTORY``, see README.md."""

from __future__ import annotations

import argparse
import asyncio

import penstock
from examples.orders.domains import DOMAINS, SHELVES
from examples.orders.topics import ORDER_CREATED, Order
from penstock import AsyncBroker, desk

PRODUCTS = ["tea", "coffee", "milk", "saffron"]


async def main() -> None:
    options = arguments()
    if options.fixed:
        SHELVES["saffron"] = "C1"
    async with penstock.open(options.target, name="shop") as broker:
        await broker.start(*DOMAINS)
        for number in range(1, options.orders + 1):
            await place(broker, number)
        await broker.wait_until_settled(timeout_s=60)
        print(await summary(broker))
        if options.stay:
            print("running, Ctrl-C stops it", flush=True)
            await broker.run()


async def place(broker: AsyncBroker, number: int) -> None:
    """Place an order; placing it again, after a crash or for fun, changes nothing."""
    name = f"order-{number}"
    order = Order(number, [PRODUCTS[number % len(PRODUCTS)]], 100 * number)
    await broker.publish(ORDER_CREATED, order, id=name, dedup_id=name)


async def summary(broker: AsyncBroker) -> str:
    """How many events each topic has, and what could not be handled."""
    topics = await broker.ask(desk.topics())
    lines = [f"{topic.events} {topic.name}" for topic in topics]
    for group in await broker.ask(desk.groups()):
        lines.append(f"{group.count} dead letters of {group.subscriber}: {group.kind}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.orders")
    parser.add_argument("target", help="data directory, or penstock://HOST:PORT")
    parser.add_argument("--orders", type=int, default=8, help="how many to place")
    parser.add_argument("--fixed", action="store_true", help="without the bug")
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
