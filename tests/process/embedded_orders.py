"""The shop of examples/orders, whose handlers note every success in a file.

``TARGET SIDE ORDERS SEED``: places orders 1 to ORDERS, most of them again, and says
``settled`` when nothing is left to do. A server that is away is waited for.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import penstock
from examples.orders.__main__ import place
from examples.orders.domains import DOMAINS, SHELVES
from penstock import Context, Domain, Event
from penstock.embedded.handler import Handler
from penstock.errors import ClientError

# Every kill costs a try of what was under way, which is no fault of these handlers.
TRIES = 1000
CONCURRENCY = 4
MAX_PAUSE_S = 0.03


class Noting:
    """Handlers that take a while, and note who has succeeded with what at their end."""

    def __init__(self, side: str, random: Random) -> None:
        self._side = os.open(side, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._random = random

    def domain(self, domain: Domain) -> Domain:
        twin = Domain(domain.name)
        for handler in domain:
            twin.add(self._handler(handler))
        return twin

    def _handler(self, handler: Handler) -> Handler:
        call = self._awaited if handler.is_async else self._called
        return replace(
            handler,
            function=partial(call, handler),
            options=replace(handler.options, tries=TRIES, concurrency=CONCURRENCY),
        )

    async def _awaited(
        self, handler: Handler, event: Event[Any], context: Context
    ) -> None:
        await asyncio.sleep(self._pause_s())
        await handler.function(event, context)
        self._note(event, context)

    def _called(self, handler: Handler, event: Event[Any], context: Context) -> None:
        time.sleep(self._pause_s())
        handler.function(event, context)
        self._note(event, context)

    def _pause_s(self) -> float:
        return self._random.uniform(0, MAX_PAUSE_S)

    def _note(self, event: Event[Any], context: Context) -> None:
        payload = event.payload
        number = getattr(payload, "number", None) or payload.order
        os.write(self._side, f"{context.subscriber} {number}\n".encode())


async def main(target: str, side: str, orders: int, seed: int) -> None:
    SHELVES["saffron"] = "C1"
    noting = Noting(side, Random(seed))
    async with penstock.open(target) as broker:
        await broker.start(*map(noting.domain, DOMAINS))
        print("started", flush=True)
        for number in range(1, orders + 1):
            await insist(partial(place, broker, number))
        await insist(partial(broker.wait_until_settled, 60))
        print("settled", flush=True)


async def insist(attempt: Callable[[], Awaitable[None]]) -> None:
    """Do it again while the server is away; with dedup ids that is safe."""
    while True:
        try:
            return await attempt()
        except ClientError:
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
