"""Events on their way to a server: columns, cut into messages of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack, cast

from penstock.errors import InvalidBatch
from penstock.model.columns import Columns, PublishColumns
from penstock.model.event import Event

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

# Large enough that a message costs nothing, small enough to be in flight twice.
PART_BYTES = 2 << 20
PART_EVENTS = 20_000

Publishable = bytes | str | Event


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Events for one topic, and by what each is known if it is sent again."""

    columns: Columns
    dedup_ids: list[str | None] | None = None

    @classmethod
    def of(
        cls,
        items: Publishable | Iterable[Publishable],
        *,
        dedup_ids: Sequence[str | None] | None = None,
        **columns: Unpack[PublishColumns],
    ) -> Outgoing:
        """Payloads with these columns, or events with what they have.

        Text is sent as UTF-8. Raises InvalidBatch for columns that do not fit.
        """
        given = [items] if isinstance(items, bytes | str | Event) else list(items)
        payloads = _all_bytes(given)
        if payloads is None:
            events = [one for one in given if isinstance(one, Event)]
            payloads = [_payload(one) for one in given]
            new = _columns_of(events, payloads) if events else Columns(payloads)
        else:
            new = Columns(payloads)
        new.take(columns)
        known = None if dedup_ids is None else list(dedup_ids)
        for name, column in {**new.given(), "dedup_ids": known}.items():
            if column is not None and len(column) != len(given):
                raise InvalidBatch(f"number of {name}", len(column), f"{len(given)}")
        return cls(new, known)

    @classmethod
    def joined(cls, parts: list[Outgoing]) -> Outgoing:
        """One behind the other; all of them have dedup ids, or none."""
        if len(parts) == 1:
            return parts[0]
        columns = Columns()
        known: list[str | None] = []
        for one in parts:
            columns.extend(one.columns)
            known += one.dedup_ids or ()
        return cls(columns, known or None)

    @property
    def payloads(self) -> list[bytes]:
        return self.columns.payloads

    def parts(self) -> Iterator[Outgoing]:
        """The events in their order, a message's worth at a time."""
        whole = sum(map(len, self.payloads))
        if self.payloads and whole <= PART_BYTES and len(self.payloads) <= PART_EVENTS:
            yield self
            return
        lo, size = 0, 0
        for hi, payload in enumerate(self.payloads):
            if hi > lo and (size + len(payload) > PART_BYTES or hi - lo >= PART_EVENTS):
                yield self._slice(lo, hi)
                lo, size = hi, 0
            size += len(payload)
        if lo < len(self.payloads):
            yield self if lo == 0 else self._slice(lo, len(self.payloads))

    def pieces(self) -> Iterator[Outgoing]:
        """The same; without events there is one piece, and it is empty."""
        if self.payloads:
            yield from self.parts()
        else:
            yield self

    def _slice(self, lo: int, hi: int) -> Outgoing:
        known = None if self.dedup_ids is None else self.dedup_ids[lo:hi]
        return Outgoing(self.columns.part(lo, hi), known)


def _columns_of(events: list[Event], payloads: list[bytes]) -> Columns:
    if len(events) != len(payloads):
        raise InvalidBatch("a batch", "of events and payloads", "of one kind")
    columns = Columns()
    for event in events:
        columns.add(event)
    columns.producers = None  # is the server's to say
    if columns.ids is not None:
        columns.ids = [one or None for one in columns.ids]
    return columns


@dataclass(frozen=True, slots=True)
class StagedEvents:
    """Events that are left at a place (query, epoch, partition, try) until a commit."""

    place: tuple[str, int, int, int]
    topic: str
    events: Outgoing


@contextmanager
def traced(
    tracing: Tracing, topic: str, events: Outgoing, name: str
) -> Iterator[Outgoing]:
    """The events with the context of a span around publishing them."""
    columns = copy(events.columns)
    given: Sequence[Mapping[str, str] | None] = columns.headers or [None] * len(columns)
    with tracing.publishing(topic, given, name) as headers:
        columns.headers = [*headers]
        yield Outgoing(columns, events.dedup_ids)


def _all_bytes(items: list[Publishable]) -> list[bytes] | None:
    """The items, if they are plain payloads, as most are; looked at by type alone."""
    if any(kind is not bytes for kind in set(map(type, items))):
        return None
    return cast("list[bytes]", items)  # by the types of all of them


def _payload(item: Publishable) -> bytes:
    if isinstance(item, bytes):
        return item
    return item.encode() if isinstance(item, str) else item.payload
