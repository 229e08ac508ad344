"""A change of one document or row, and the event that it becomes.

The payload is JSON: what was done (``op``), to which document (``key``), what it was
(``before``) and is now (``after``), and where in the source that was. The id of the
event is made of that place, so the same change has the same id for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from penstock.client.feed import Events

# Of documents that are taken at once, as they come; a larger one is taken alone.
TAKE_BYTES = 8 << 20

Op = Literal["read", "insert", "update", "delete", "truncate"]


class Source(msgspec.Struct, frozen=True):
    """Where a change was: the system, and the place in its own terms."""

    system: Literal["postgresql", "mongodb"]
    database: str
    collection: str
    position: str
    at_ms: int | None


class Body(msgspec.Struct, frozen=True):
    """The payload of an event; documents are JSON already."""

    op: Op
    key: str | None
    before: msgspec.Raw
    after: msgspec.Raw
    source: Source


NOTHING = msgspec.Raw(b"null")


class Change(msgspec.Struct, frozen=True):
    """``id`` is of the event; ``body`` has the rest."""

    id: str
    body: Body

    @property
    def collection(self) -> str:
        return self.body.source.collection


_encode = msgspec.json.Encoder().encode


def events_of(changes: Iterable[Change], prefix: str = "") -> list[Events]:
    """Changes as events, a topic for each collection, in their order."""
    by_topic: dict[str, list[Change]] = {}
    for change in changes:
        by_topic.setdefault(prefix + change.collection, []).append(change)
    return [
        Events(
            topic,
            [_encode(one.body) for one in found],
            keys=[
                None if one.body.key is None else one.body.key.encode() for one in found
            ],
            ids=[one.id for one in found],
        )
        for topic, found in by_topic.items()
    ]
