"""A web application whose outbox is the embedded broker, see README.md.

An order is answered with 201 when its event is on disk. Its mail is sent by a handler
afterwards: if that fails it is tried again, and after a crash it is tried again too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, cast

from fastapi import Depends, FastAPI, Header, Request

import penstock
from examples.outbox.mail import DATA, MAIL, ORDERS, Order
from penstock import AsyncBroker


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with penstock.open(DATA, name="web") as broker:
        await broker.start(MAIL)
        app.state.broker = broker
        yield


def opened(request: Request) -> AsyncBroker:
    return cast(AsyncBroker, request.app.state.broker)


app = FastAPI(lifespan=lifespan)
Broker = Annotated[AsyncBroker, Depends(opened)]
Key = Annotated[str | None, Header()]


@app.post("/orders", status_code=201)
async def create(
    order: Order, broker: Broker, idempotency_key: Key = None
) -> dict[str, str]:
    """Store an order; with the same key twice, once."""
    stored = await broker.publish(ORDERS, order, dedup_id=idempotency_key)
    return {"id": stored.id}
