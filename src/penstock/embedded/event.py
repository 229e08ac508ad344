"""An event as a handler gets it: its payload is of the type that was asked for."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

Payload = TypeVar("Payload")


class Event(msgspec.Struct, Generic[Payload], frozen=True, gc=False):
    """One event of a topic. ``priority``: higher first. Times are milliseconds."""

    topic: str
    offset: int
    id: str
    timestamp_ms: int
    payload: Payload
    key: bytes | None = None
    priority: int = 0
    headers: dict[str, str] = {}
    parent: str | None = None
    producer: str | None = None
    expires_ms: int | None = None
    not_before_ms: int | None = None
