"""A change of one document or row, and the event that it becomes.

The payload is JSON: what was done (``op``), to which document (``key``), what it was
(``before``) and is now (``after``), and where in the source that was. The id of the
event is made of that place, so the same change has the same id for ever. Where a
message is named (shown.py), it is one more field, ``msg``, in front of all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from penstock.cdc.shown import NOTHING, Shown, shown_document
from penstock.client.feed import FeedEvents
from penstock.model.event import MESSAGE_FIELD

# Of documents that are taken at once, as they come; a larger one is taken alone.
TAKE_BYTES = 8 << 20

Op = Literal["read", "insert", "update", "delete", "truncate"]


class ChangeSource(msgspec.Struct, frozen=True, gc=False):
    """Where a change was: the system, and the place in its own terms."""

    system: Literal["postgresql", "mongodb"]
    database: str
    collection: str
    position: str
    at_ms: int | None


class ChangePayload(msgspec.Struct, frozen=True, gc=False):
    """The payload of an event; documents are JSON already."""

    op: Op
    key: str | None
    before: msgspec.Raw
    after: msgspec.Raw
    source: ChangeSource


__all__ = ["NOTHING", "Change", "ChangePayload", "ChangeSource", "Op", "events_of"]

# The header of events that have a message: which field of the payload it is.
_HEADERS = {MESSAGE_FIELD: "msg"}


class Change(msgspec.Struct, frozen=True, gc=False):
    """``id`` is of the event; ``body`` has the rest."""

    id: str
    body: ChangePayload

    @property
    def collection(self) -> str:
        return self.body.source.collection


_encode = msgspec.json.Encoder().encode


def events_of(
    changes: Iterable[Change],
    prefix: str = "",
    shown: Mapping[str, Shown] | None = None,
) -> list[FeedEvents]:
    """Changes as events, a topic for each collection, in their order.

    ``shown``: what people see of a collection, where that was said.
    """
    by_collection: dict[str, list[Change]] = {}
    for change in changes:
        by_collection.setdefault(change.collection, []).append(change)
    return [
        _events(prefix + name, found, (shown or {}).get(name))
        for name, found in by_collection.items()
    ]


def _events(topic: str, changes: list[Change], shown: Shown | None) -> FeedEvents:
    bodies = [change.body for change in changes]
    keys = [None if body.key is None else body.key.encode() for body in bodies]
    ids = [change.id for change in changes]
    payloads = list(map(_encode, bodies))
    if shown is None:
        return FeedEvents(topic, payloads, keys=keys, ids=ids)
    documents = [shown_document(body.before, body.after) for body in bodies]
    priorities = shown.priorities(documents)
    if shown.message is None:
        return FeedEvents(topic, payloads, keys=keys, ids=ids, priorities=priorities)
    messages = shown.messages(documents)
    return FeedEvents(
        topic,
        [
            b'{"msg":' + message + b"," + payload[1:]
            for message, payload in zip(messages, payloads, strict=True)
        ],
        keys=keys,
        ids=ids,
        headers=[_HEADERS] * len(changes),
        priorities=priorities,
    )
