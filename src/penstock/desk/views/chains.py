"""What the desk tells of a chain: events as they are found, some at a time."""

from __future__ import annotations

from typing import Literal

from penstock.desk.views import View


class ChainEvent(View, frozen=True, kw_only=True):
    """``payload`` is the beginning of one that has ``payload_bytes``; so is ``key``.

    ``level`` is the distance from what was asked for: less than 0 for causes, more for
    effects.
    """

    topic: str
    offset: int
    id: str
    timestamp: int
    parent: str | None
    producer: str | None
    key: bytes | None
    payload: bytes
    payload_bytes: int
    level: int
    asked: bool


class ChainPage(View, frozen=True, kw_only=True):
    """``next``: ask again with it; there may be more, also if this page is empty.

    ``cut`` says which limit ended it, ``behind`` how many events are not indexed yet,
    and so are not looked at.
    """

    events: list[ChainEvent]
    cut: Literal["depth", "limit"] | None
    behind: int
    next: int | None
