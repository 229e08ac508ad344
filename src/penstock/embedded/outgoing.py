"""Events on their way into the log, and what became of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from penstock.broker.names import accepted_topic, check_ids
from penstock.clock import Clock, SystemClock
from penstock.embedded.payload import plain
from penstock.embedded.topic import Topic
from penstock.errors import InvalidBatch, PenstockError
from penstock.log import Columns
from penstock.model.event import SETTABLE, TEXTS, TIMES, Field
from penstock.model.moment import seconds_of, time_ms

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing


Time = int | datetime
Seconds = float | timedelta


class ContextOptions(TypedDict, total=False):
    """What a handler may say of an event besides its payload.

    Times are milliseconds since 1970, or a ``datetime`` with its time zone; lengths of
    time are seconds, or a ``timedelta``. From ``expires`` on, or ``expires_in`` from
    now, the event is delivered to no new subscriber; before ``not_before``, or until
    after ``delay``, to none.
    """

    key: bytes | None
    priority: int
    headers: Mapping[str, str] | None
    id: str | None
    parent: str | None
    expires: Time | None
    expires_in: Seconds | None
    not_before: Time | None
    delay: Seconds | None


class PublishOptions(ContextOptions, total=False):
    """The same, and what the event is known by if it is published again."""

    dedup_id: str | None


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
    expires: int | None = None
    not_before: int | None = None

    @classmethod
    def of(
        cls,
        topic: Topic[Any] | str,
        payload: Any,
        clock: Clock | None = None,
        **more: Unpack[PublishOptions],
    ) -> Intent:
        """Checked as far as it can be without the broker.

        Raises UnfitPayload, InvalidName, ReservedName, InvalidBatch.
        """
        if isinstance(topic, Topic):
            name, data = topic.name, topic.codec.encode(topic.name, payload)
        else:
            name, data = accepted_topic(topic), plain(topic, payload)
        if not more:
            return cls(name, data)
        # Any: as Intent has them from here on.
        given: dict[str, Any] = {**more}
        for field in TEXTS:
            check_ids(field.name, [given.get(field.name)])
        check_ids("dedup id", [given.get("dedup_id")])
        if given.get("headers") is not None:
            given["headers"] = dict(given["headers"])
        for field in TIMES:
            after = given.pop(field.relative, None)
            if after is not None:
                given[field.name] = _from_now(field, after, given, clock)
            elif given.get(field.name) is not None:
                given[field.name] = _time(field, given[field.name])
        return cls(name, data, **given)


def _from_now(
    field: Field, after: Seconds, given: Mapping[str, Any], clock: Clock | None
) -> int:
    if given.get(field.name) is not None:
        limit = f"left out, where {field.name} is given"
        raise InvalidBatch(field.relative, after, limit)
    now_s = (clock or SystemClock()).now_s()
    return _time(field, int((now_s + seconds_of(after)) * 1000))


def _time(field: Field, given: Time) -> int:
    found = time_ms(given)
    if found is None:
        raise InvalidBatch(field.name, given, field.limit)
    return found


# What an intent says besides its payload, and that of one that says nothing.
_settable = attrgetter(*(field.name for field in SETTABLE))
_NOTHING = _settable(Intent("", b""))


class Stored(msgspec.Struct, frozen=True, gc=False):
    """Where a published event is. It is on disk."""

    topic: str
    offset: int
    id: str


def columns_of(intents: Sequence[Intent], now_ms: int, producer: str | None) -> Columns:
    """Events of one topic in columns; those that all leave out stay out."""
    columns = Columns([one.payload for one in intents], now_ms, producer=producer)
    # A look at all of them together: most say nothing but their payload.
    if [*map(_settable, intents)].count(_NOTHING) == len(intents):
        return columns
    for field in SETTABLE:
        values = [getattr(one, field.name) for one in intents]
        some = [value for value in values if value is not None]
        if some and (field.blank is None or some.count(field.blank) < len(some)):
            blank = field.blank
            column = [blank if value is None else value for value in values]
            setattr(columns, field.column, column)
    return columns


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
    """Events of one topic that are stored together, for every publisher of one."""

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
        """They are on disk: tell every publisher."""
        if self._ids is None:
            self._ids = [id_at(self.topic, offset) for offset in self._offsets]
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def lost(self, error: PenstockError) -> None:
        """They are not: tell every publisher."""
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
