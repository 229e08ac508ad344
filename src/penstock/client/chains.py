"""A whole chain, asked for page by page."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.client.plan import Plan, question
from penstock.desk.views.chains import ChainEvent, ChainPage


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a chain in the order they were found: asked, causes, effects.

    ``cut`` says which limit ended it, ``behind`` how many events were not indexed yet.
    """

    events: list[ChainEvent]
    cut: Literal["depth", "limit"] | None
    behind: int


def chain(
    id: str | None = None,
    *,
    topic: str | None = None,
    offset: int | None = None,
    depth: int | None = None,
    limit: int | None = None,
    direction: Literal["both", "up", "down"] = "both",
    whole: bool = False,
) -> Plan[Chain]:
    """Ancestors and descendants of an event, by its id or by topic and offset."""
    events: list[ChainEvent] = []
    page: ChainPage = yield from question(
        ChainPage,
        "chains.show",
        id=id,
        topic=topic,
        offset=offset,
        depth=depth,
        limit=limit,
        direction=direction,
        whole=whole,
    )
    events += page.events
    while page.next is not None:
        page = yield from question(ChainPage, "chains.show", next=page.next)
        events += page.events
    return Chain(events=events, cut=page.cut, behind=page.behind)


def place_of(name: str) -> tuple[str, int] | None:
    """Topic and offset of a name of the form TOPIC:OFFSET."""
    topic, _, digits = name.rpartition(":")
    if not topic or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        return None
    return topic, int(digits)
