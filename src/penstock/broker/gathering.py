"""Small publishes of many connections, stored in one step.

A thousand connections that publish one event each would be a thousand ways down to the
log. What they publish is laid side by side here until the open group closes, or until
it is much, and is then one batch. Nothing is promised before: a publisher is told by
then which group has its events, or why they are refused.

Whatever has to come behind what was gathered, in the order of its connection or of a
subscription, has it stored first: ``store`` costs nothing if there is nothing.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from penstock.broker.publishing import Accepted, StoredPiece
from penstock.errors import PenstockError
from penstock.log import Columns

if TYPE_CHECKING:
    from penstock.broker.broker import Broker

logger = logging.getLogger(__name__)

# A publish of more events, or of more bytes, gains nothing here.
MAX_EVENTS = 16
MAX_BYTES = 1 << 12
# What is gathered at most before it is stored: until then no limit of the log knows it.
GATHERED_BYTES = 1 << 18
# What an event takes besides its payload, its topic and its headers.
EVENT_BYTES = 256


class GatheringPublisher(Protocol):
    """Who publishes here; ``said`` is what it has given with its events."""

    # Any: whatever it has given, and nobody else looks at.

    def in_group(self, said: Any, events: Sequence[int]) -> None:
        """These of its events, by their number, are in the open group now.

        What belongs to them can go into the same group. Only for who is ``noted``.
        """

    def stored(
        self, said: Any, group: int, refused: Mapping[int, PenstockError]
    ) -> None:
        """All of its events that are not refused are in this group, or before it."""

    def dropped(self, said: Any) -> None:
        """A mistake of ours: it is not known what became of the events."""


class SmallPublish(msgspec.Struct, frozen=True, gc=False):
    """Events that one publisher says alike.

    relaxed: no promise that they are on disk.
    noted: its publisher hears of the group before it closes.
    """

    publisher: GatheringPublisher
    said: Any
    topic: str
    payloads: Sequence[bytes]
    timestamp_ms: int
    producer: str
    headers: Mapping[str, str]
    relaxed: bool
    noted: bool


class Gathering:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._publishes: list[SmallPublish] = []
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._publishes)

    def add(self, publish: SmallPublish) -> None:
        """Take what is ``is_small``, of a publisher who is on nobody's account."""
        self._publishes.append(publish)
        each = EVENT_BYTES + len(publish.topic) + _size(publish.headers)
        self._size += each * len(publish.payloads)
        for payload in publish.payloads:
            self._size += len(payload)
        if self._size > GATHERED_BYTES:
            self.store()

    def store(self) -> None:
        """Put all of it into the open group, and tell the publishers."""
        publishes = self._publishes
        if not publishes:
            return
        self._publishes, self._size = [], 0
        try:
            outcome = self._accept(publishes)
        except Exception:
            # It is for these connections to suffer, not for the group that closes.
            logger.exception(
                "%d publishes were not stored",
                len(publishes),
                extra={"action": "gathering_failed"},
            )
            for one in publishes:
                one.publisher.dropped(one.said)
            return
        group = outcome.group or self._broker.promised
        if not outcome.refused:
            for one in publishes:
                one.publisher.stored(one.said, group, {})
            return
        found = _by_publish(publishes, outcome.refused)
        for at, one in enumerate(publishes):
            mine = {number: outcome.refused[unit] for number, unit in found.get(at, ())}
            one.publisher.stored(one.said, group, mine)

    def lose(self, group: int) -> None:
        """A group has failed, and takes along what came behind it."""
        publishes, self._publishes, self._size = self._publishes, [], 0
        for one in publishes:
            one.publisher.stored(one.said, group, {})

    def _accept(self, publishes: list[SmallPublish]) -> Accepted:
        topics, events = _batch(publishes)
        broker, topic = self._broker, topics[0]
        relaxed = all([one.relaxed for one in publishes])

        def stored(piece: StoredPiece) -> None:
            for at, found in _by_publish(publishes, piece.units).items():
                one = publishes[at]
                if one.noted:
                    one.publisher.in_group(one.said, [number for number, _ in found])

        told = stored if any([one.noted for one in publishes]) else None
        with broker.accounts.acting(None):
            if topics.count(topic) < len(topics):
                return broker.accept_rows(topics, events, relaxed=relaxed, stored=told)
            try:
                return broker.accept(topic, events, relaxed=relaxed, stored=told)
            except PenstockError as error:
                return Accepted([], dict.fromkeys(range(len(topics)), error))


def is_small(payloads: Sequence[bytes], headers: Mapping[str, str]) -> bool:
    """``headers``: of each."""
    size = _size(headers) * len(payloads) if headers else 0
    return len(payloads) <= MAX_EVENTS and size + sum(map(len, payloads)) <= MAX_BYTES


def _size(headers: Mapping[str, str]) -> int:
    return sum([len(name) + len(value) for name, value in headers.items()])


def _batch(publishes: list[SmallPublish]) -> tuple[list[str], Columns]:
    """Topics and events of publishes, one after the other."""
    topics: list[str] = []
    events = Columns()
    payloads, timestamps = events.payloads, events.timestamps
    producers: list[str | None] = []
    headers: list[Mapping[str, str]] = []
    for one in publishes:
        count = len(one.payloads)
        payloads += one.payloads
        topics += (one.topic,) * count
        timestamps += (one.timestamp_ms,) * count
        producers += (one.producer,) * count
        headers += (one.headers,) * count
    events.producers = producers
    if any(headers):
        events.headers = headers
    return topics, events


def _by_publish(
    publishes: list[SmallPublish], units: Iterable[int]
) -> dict[int, list[tuple[int, int]]]:
    """Events by the place of their publish: their number there, and in the batch."""
    starts, end = [], 0
    for one in publishes:
        starts.append(end)
        end += len(one.payloads)
    found: dict[int, list[tuple[int, int]]] = {}
    for unit in units:
        at = bisect_right(starts, unit) - 1
        found.setdefault(at, []).append((unit - starts[at], unit))
    return found
