"""Penstock, a durable message broker.

    import penstock

    orders = penstock.Topic("orders", Order)
    billing = penstock.Domain("billing")

    @billing.on(orders)
    async def charge(event: penstock.Event[Order], context: penstock.Context) -> None:
        ...

    async with penstock.open("data") as broker:
        await broker.start(billing)
        await broker.publish(orders, Order(...))

Importing this package is cheap: the names above are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.embedded import (
        AsyncBroker,
        BlockingBroker,
        Context,
        Domain,
        Event,
        GiveUp,
        HandlerOptions,
        LocalOptions,
        Stored,
        Topic,
        desk,
        open,
    )

__all__ = [
    "AsyncBroker",
    "BlockingBroker",
    "Context",
    "Domain",
    "Event",
    "GiveUp",
    "HandlerOptions",
    "LocalOptions",
    "Stored",
    "Topic",
    "__version__",
    "desk",
    "open",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "desk":
        return import_module("penstock.desk")
    value: object = getattr(import_module("penstock.embedded"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
