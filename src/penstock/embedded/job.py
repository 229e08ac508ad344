"""Events that a handler has to see to, made from whole columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.embedded.event import Event
from penstock.embedded.payload import Codec
from penstock.log import Batch
from penstock.model.columns import event_columns
from penstock.model.event import FIELDS

# Fields as an Event has them: those that every event has, then the others.
_FIELDS = {one.attribute: one for one in FIELDS}
_IN_ORDER = [_FIELDS[name] for name in Event.__struct_fields__[1:]]
_ALWAYS = [one.column for one in _IN_ORDER[:4]]
_OPTIONAL = [one.column for one in _IN_ORDER[4:]]


# One is made for every event: a Struct costs a third of a class of Python.
class Job(msgspec.Struct, eq=False, gc=False):
    """One event at hand; ``tries``: this is its first try, its second…"""

    event: Event[bytes]
    offset: int
    tries: int
    lane: Hashable

    def typed(self, codec: Codec[Any]) -> Event[Any]:
        """The event with its payload decoded; raises UnfitPayload."""
        raw = self.event
        if codec.raw:
            return raw
        return structs.replace(raw, payload=codec.decode(raw.topic, raw.payload))


def jobs_of(topic: str, portions: Iterable[Portion], *, by_key: bool) -> list[Job]:
    """The events of portions, in their order."""
    found: list[Job] = []
    for portion in portions:
        events = _events(topic, portion.page, portion.lo, portion.hi)
        tries = portion.tries
        if by_key:
            found += [Job(one, one.offset, tries, lane_of(one)) for one in events]
        else:
            found += [Job(one, one.offset, tries, None) for one in events]
    return found


def lane_of(event: Event[bytes]) -> Hashable:
    """What an event has to be in order with: its key; without one, only itself."""
    return event.offset if event.key is None else event.key


def _events(topic: str, page: Page, lo: int, hi: int) -> list[Event[bytes]]:
    whole = page.batch
    batch = Batch(whole.topic, whole.body, whole.header, lo, hi)
    given = {name: batch.given(name) for name in _OPTIONAL}
    return events_of(
        topic,
        {
            **given,
            "offsets": batch.offsets(),
            "timestamps": batch.timestamps(),
            "ids": page.ids[lo:hi],
            "payloads": page.payloads[lo:hi],
        },
    )


def events_of(
    topic: str, columns: Mapping[str, Sequence[Any] | None]
) -> list[Event[bytes]]:
    """Rows of columns as events; None: all have the default."""
    # Any: the values of whichever field.
    always = [columns[name] or () for name in _ALWAYS]
    if all(columns.get(name) is None for name in _OPTIONAL):
        return [Event(topic, *row) for row in zip(*always, strict=True)]
    filled = event_columns(columns, len(always[0]), _IN_ORDER)
    return [Event(topic, *row) for row in zip(*filled, strict=True)]
