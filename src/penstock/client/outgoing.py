"""Events on their way to a server: columns, cut into messages of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from penstock.errors import InvalidBatch
from penstock.model.event import Event

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

# Large enough that a message costs nothing, small enough to be in flight twice.
PART_BYTES = 2 << 20
PART_EVENTS = 20_000

Item = bytes | str | Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """Entry ``i`` of a column belongs to event ``i``; None: all have the default."""

    payloads: list[bytes]
    ids: list[str | None] | None = None
    keys: list[bytes | None] | None = None
    priorities: list[int] | None = None
    headers: list[dict[str, str]] | None = None
    parents: list[str | None] | None = None
    dedup_ids: list[str | None] | None = None

    @classmethod
    def of(
        cls,
        items: Item | Iterable[Item],
        *,
        ids: Sequence[str | None] | None = None,
        keys: Sequence[bytes | None] | None = None,
        priorities: Sequence[int] | None = None,
        headers: Sequence[Mapping[str, str]] | None = None,
        parents: Sequence[str | None] | None = None,
        dedup_ids: Sequence[str | None] | None = None,
    ) -> Outgoing:
        """Payloads with these columns, or events with what they have.

        Text is sent as UTF-8. Raises InvalidBatch for columns that do not fit.
        """
        given = [items] if isinstance(items, bytes | str | Event) else list(items)
        events: list[Event] = []
        payloads = _all_bytes(given)
        if payloads is None:
            payloads = [_payload(one) for one in given]
            events = [one for one in given if isinstance(one, Event)]
        columns = cls(
            payloads=payloads,
            ids=None if ids is None else list(ids),
            keys=None if keys is None else list(keys),
            priorities=None if priorities is None else list(priorities),
            headers=None if headers is None else [dict(one) for one in headers],
            parents=None if parents is None else list(parents),
            dedup_ids=None if dedup_ids is None else list(dedup_ids),
        )
        if events:
            columns = columns._with(events)
        for name, column in columns._optional().items():
            if column is not None and len(column) != len(given):
                raise InvalidBatch(f"number of {name}", len(column), f"{len(given)}")
        return columns

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
        columns = {
            name: None if column is None else list(column[lo:hi])
            for name, column in self._optional().items()
        }
        # Slices have the types of what they are slices of.
        return Outgoing(payloads=self.payloads[lo:hi], **columns)  # type: ignore[arg-type]

    def _optional(self) -> dict[str, Sequence[object] | None]:
        return {
            "ids": self.ids,
            "keys": self.keys,
            "priorities": self.priorities,
            "headers": self.headers,
            "parents": self.parents,
            "dedup_ids": self.dedup_ids,
        }

    def _with(self, events: list[Event]) -> Outgoing:
        if len(events) != len(self.payloads):
            raise InvalidBatch("a batch", "of events and payloads", "of one kind")
        return replace(
            self,
            ids=[one.id or None for one in events],
            keys=[one.key for one in events],
            priorities=[one.priority for one in events],
            headers=[dict(one.headers) for one in events],
            parents=[one.parent for one in events],
        )


@dataclass(frozen=True, slots=True)
class Staged:
    """Events that are left at a place (query, epoch, partition, try) until a commit."""

    place: tuple[str, int, int, int]
    topic: str
    events: Outgoing


@contextmanager
def traced(
    tracing: Tracing, topic: str, events: Outgoing, name: str
) -> Iterator[Outgoing]:
    """The events with the context of a span around publishing them."""
    given: Sequence[Mapping[str, str] | None] = events.headers or [None] * len(
        events.payloads
    )
    with tracing.publishing(topic, given, name) as headers:
        yield replace(events, headers=headers)


def _all_bytes(items: list[Item]) -> list[bytes] | None:
    """The items, if they are plain payloads, as most are; looked at by type alone."""
    if any(kind is not bytes for kind in set(map(type, items))):
        return None
    return cast("list[bytes]", items)  # by the types of all of them


def _payload(item: Item) -> bytes:
    if isinstance(item, bytes):
        return item
    return item.encode() if isinstance(item, str) else item.payload
