"""Events that a handler has to see to, made from whole columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec

from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.embedded.event import Event
from penstock.embedded.payload import Codec
from penstock.log import Batch, Column


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
        return Event(
            topic=raw.topic,
            offset=raw.offset,
            id=raw.id,
            timestamp_ms=raw.timestamp_ms,
            payload=codec.decode(raw.topic, raw.payload),
            key=raw.key,
            priority=raw.priority,
            headers=raw.headers,
            parent=raw.parent,
            producer=raw.producer,
        )


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
    has = whole.columns()
    return events_of(
        topic,
        batch.offsets(),
        batch.timestamps(),
        page.ids[lo:hi],
        page.payloads[lo:hi],
        page.priorities[lo:hi] if Column.PRIORITY in has else None,
        batch.keys() if Column.KEY in has else None,
        batch.headers() if Column.HEADERS in has else None,
        batch.parents() if Column.PARENT in has else None,
        batch.producers() if Column.PRODUCER in has else None,
    )


def events_of(
    topic: str,
    offsets: Sequence[int],
    timestamps: Sequence[int],
    ids: Sequence[str],
    payloads: Sequence[bytes],
    priorities: Sequence[int] | None,
    keys: Sequence[bytes | None] | None,
    headers: Sequence[dict[str, str]] | None,
    parents: Sequence[str | None] | None,
    producers: Sequence[str | None] | None,
) -> list[Event[bytes]]:
    """Rows of columns as events; None: all have the default."""
    some = (priorities, keys, headers, parents, producers)
    if all(column is None for column in some):
        return [
            Event(topic, offset, id_, at, payload)
            for offset, id_, at, payload in zip(
                offsets, ids, timestamps, payloads, strict=True
            )
        ]
    count = len(offsets)
    rows = zip(
        offsets,
        ids,
        timestamps,
        payloads,
        keys or [None] * count,
        priorities or [0] * count,
        headers or [{} for _ in offsets],
        parents or [None] * count,
        producers or [None] * count,
        strict=True,
    )
    return [Event(topic, *row) for row in rows]
