"""The embedded broker: ``penstock.open`` and what programs are written with."""

from __future__ import annotations

from penstock.embedded.aio import AsyncBroker
from penstock.embedded.blocking import BlockingBroker
from penstock.embedded.context import Context
from penstock.embedded.domain import Domain
from penstock.embedded.event import Event
from penstock.embedded.local_broker import LocalOptions
from penstock.embedded.opening import Opening, open
from penstock.embedded.options import HandlerOptions
from penstock.embedded.outgoing import Stored
from penstock.embedded.topic import Topic
from penstock.errors import GiveUp

__all__ = [
    "AsyncBroker",
    "BlockingBroker",
    "Context",
    "Domain",
    "Event",
    "GiveUp",
    "HandlerOptions",
    "LocalOptions",
    "Opening",
    "Stored",
    "Topic",
    "open",
]
