"""Events on their way into the log, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.broker.acceptance import accepted_topic, check_ids
from penstock.embedded.payload import plain
from penstock.embedded.topic import Topic
from penstock.errors import PenstockError
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing


class Intent(msgspec.Struct, frozen=True, gc=False):
    """One event that is to be published."""

    topic: str
    payload: bytes
    key: bytes | None = None
    priority: int = 0
    headers: dict[str, str] | None = None
    id: str | None = None
    parent: str | None = None
    dedup_id: str | None = None

    @classmethod
    def of(
        cls,
        topic: Topic[Any] | str,
        payload: Any,
        *,
        key: bytes | None = None,
        priority: int = 0,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
        parent: str | None = None,
        dedup_id: str | None = None,
    ) -> Intent:
        """Checked as far as it can be without the broker.

        Raises UnfitPayload, InvalidName, ReservedName, InvalidBatch.
        """
        if isinstance(topic, Topic):
            name, data = topic.name, topic.codec.encode(topic.name, payload)
        else:
            name, data = accepted_topic(topic), plain(topic, payload)
        if id is not None or dedup_id is not None:
            check_ids("id", [id])
            check_ids("dedup id", [dedup_id])
        if parent is not None:
            check_ids("parent", [parent])
        given = None if headers is None else dict(headers)
        return cls(name, data, key, priority, given, id, parent, dedup_id)


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a published event is. It is on disk."""

    topic: str
    offset: int
    id: str


def columns_of(intents: Sequence[Intent], now_ms: int, producer: str | None) -> Columns:
    """Events of one topic in columns; those that all leave out stay out."""
    return Columns(
        [one.payload for one in intents],
        now_ms,
        ids=_column([one.id for one in intents]),
        keys=_column([one.key for one in intents]),
        priorities=_priorities(intents),
        headers=_headers(intents),
        parents=_column([one.parent for one in intents]),
        producer=producer,
    )


@contextmanager
def traced(
    tracing: Tracing, intents: Sequence[Intent], name: str
) -> Iterator[list[Intent]]:
    """Events of one topic with the context of a span around publishing them."""
    topic, given = intents[0].topic, [one.headers for one in intents]
    with tracing.publishing(topic, given, name) as headers:
        yield [
            msgspec.structs.replace(one, headers=carried)
            for one, carried in zip(intents, headers, strict=True)
        ]


def by_topic(intents: Iterable[Intent]) -> dict[str, list[Intent]]:
    found: dict[str, list[Intent]] = {}
    for one in intents:
        found.setdefault(one.topic, []).append(one)
    return found


class Posting:
    """Events of one topic that are stored together, for everybody who published one."""

    __slots__ = ("_ids", "_offsets", "_waiters", "errors", "intents", "topic")

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.intents: list[Intent] = []
        self.errors: dict[int, PenstockError] = {}
        """Those that were refused, by their index."""
        self._offsets: Sequence[int] = ()
        self._ids: Sequence[str] | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def add(self, intent: Intent) -> int:
        self.intents.append(intent)
        return len(self.intents) - 1

    def wait(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Ends when what was not refused is on disk.

        Each publisher has its own: cancelling one of them is not to harm the others.
        """
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        return waiter

    def placed(self, offsets: Sequence[int], ids: Sequence[str] | None) -> None:
        """Where the events are; their ids, unless they are still to be looked up."""
        self._offsets, self._ids = offsets, ids

    def stored(self, id_at: Callable[[str, int], str]) -> None:
        """They are on disk: tell everybody."""
        if self._ids is None:
            self._ids = [id_at(self.topic, offset) for offset in self._offsets]
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def lost(self, error: PenstockError) -> None:
        """They are not: tell everybody."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(error)

    @property
    def refused(self) -> bool:
        """Whether all of them are."""
        return len(self.errors) == len(self.intents)

    def offset(self, index: int) -> int:
        return self._offsets[index]

    def result(self, index: int) -> Stored:
        """Where one event is; raises why it was refused."""
        if index in self.errors:
            raise self.errors[index]
        id_ = self.intents[index].id
        if id_ is None:
            assert self._ids is not None, "known once they are stored"
            id_ = self._ids[index]
        return Stored(self.topic, self._offsets[index], id_)


def _column(values: list[Any]) -> list[Any] | None:
    # Any: the values of one field, whichever it is. An empty key is a key.
    return values if any(one is not None for one in values) else None


def _priorities(intents: Sequence[Intent]) -> list[int] | None:
    given = [one.priority for one in intents]
    return given if any(given) else None


def _headers(intents: Sequence[Intent]) -> list[dict[str, str]] | None:
    given = [one.headers or {} for one in intents]
    return given if any(given) else None
