"""A little application for tests of the harness: orders come in, payments go out."""

from __future__ import annotations

import asyncio
from typing import Unpack

import msgspec

from penstock import Context, Domain, Event, Topic
from penstock.embedded.options import HandlerSettings


class Order(msgspec.Struct, frozen=True):
    total: int
    nap_s: float = 0.0


class Payment(msgspec.Struct, frozen=True):
    total: int


orders = Topic("orders", Order)
payments = Topic("payments", Payment)


def billing(**settings: Unpack[HandlerSettings]) -> Domain:
    """Charges what is ordered, after a nap; refuses what is negative."""
    domain = Domain("billing")

    @domain.on(orders, **settings)
    async def charge(event: Event[Order], context: Context) -> None:
        if event.payload.nap_s:
            await asyncio.sleep(event.payload.nap_s)
        if event.payload.total < 0:
            raise ValueError("the total is negative")
        context.publish(payments, Payment(event.payload.total))

    return domain


def till(seen: list[Payment], **settings: Unpack[HandlerSettings]) -> Domain:
    """Notes what is paid; not async."""
    domain = Domain("till")

    @domain.on(payments, **settings)
    def note(event: Event[Payment]) -> None:
        seen.append(event.payload)

    return domain
