"""An event apart from its topic: copied into a letter, or amended by a person.

An amended event is a batch frame of one event, with the offset and id of the stored
one: its consumer cannot tell the difference. It is kept with the subscription that
owes it, and with nothing else.
"""

from __future__ import annotations

import msgspec

from penstock.delivery.pages import Page
from penstock.log import Batch, Columns, frame_of
from penstock.model.event import Event

# Its id is given, so that none is made up from this.
_NO_BASE = bytes(16)


class EventCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event as it was delivered."""

    id: str
    timestamp_ms: int
    priority: int = 0
    key: bytes | None = None
    headers: dict[str, str] = {}
    parent: str | None = None
    producer: str | None = None
    payload: bytes = b""
    expires_ms: int | None = None
    not_before_ms: int | None = None

    @classmethod
    def of(cls, event: Event) -> EventCopy:
        values = {name: getattr(event, name) for name in cls.__struct_fields__}
        return cls(**values | {"headers": dict(event.headers)})

    def event(self, topic: str, offset: int) -> Event:
        """The event again, at its place."""
        return Event(topic=topic, offset=offset, **msgspec.structs.asdict(self))


def amended_frame(
    event: EventCopy | Event, topic: str, offset: int, payload: bytes
) -> bytes:
    """The frame of an event whose payload is another; raises InvalidBatch."""
    if isinstance(event, EventCopy):
        event = event.event(topic, offset)
    columns = Columns()
    columns.add(msgspec.structs.replace(event, payload=payload))
    columns.check()
    return bytes(frame_of(columns, offset, _NO_BASE))


def amended_page(topic: str, frame: bytes) -> Page:
    """The page that an amended event is delivered from."""
    return Page(Batch.of(topic, frame))


def event_at(page: Page, index: int) -> Event:
    """One event of a page."""
    whole = page.batch
    return next(Batch(whole.topic, whole.body, whole.header, index, index + 1).events())
