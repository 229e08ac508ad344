"""What the clients of a load know, and what the log says: compared.

Everything a client notes is something it was told, in the order it was told.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from penstock.log import BrokerLog, Reader
from penstock.torture.promise import PromiseBroken, holds


class EventPlace(NamedTuple):
    """Where a topic has an event, as its publisher was told."""

    topic: str
    offset: int


class Sent(NamedTuple):
    """An event that a publisher has sent."""

    topic: str
    text: str
    priority: int = 0


class ConsumerStep(NamedTuple):
    """A step of a consumer in one topic, see ``check_priorities``."""

    what: str  # asked, got, returned
    id: str = ""
    known: int = 0


@dataclass
class LoadRecord:
    """Shared by all clients of a load."""

    open: bool = False
    """Whether publishers may begin something new."""
    known: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Topic -> texts that are confirmed, in the order that was heard of."""
    done: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    """Topic -> consumer -> how many events it has finished."""
    max_lag: int = 400
    """Publishers wait for consumers that are further behind."""

    def may_publish(self, topic: str) -> bool:
        lag = len(self.known[topic]) - min(self.done[topic].values(), default=0)
        return self.open and lag < self.max_lag


class StoredEvent(NamedTuple):
    """An event as the log has it."""

    offset: int
    id: str
    priority: int
    payload: bytes

    @property
    def text(self) -> str:
        """The payload of those who publish JSON."""
        return str(json.loads(self.payload))


T = TypeVar("T")


class _Found(dict[str, T]):
    """By the names of topics. One that a client was told of has to be there."""

    def __missing__(self, topic: str) -> T:
        raise PromiseBroken(f"topic {topic} is gone")


class Truth:
    """All topics, as a reader of the log finds them."""

    def __init__(self, log: BrokerLog | Reader) -> None:
        names = [name for name in log.topics() if name[0] != "$"]
        self.topics = _Found({name: list(_stored(log, name)) for name in names})
        self.by_id = _Found(
            {
                name: {one.id: one for one in events}
                for name, events in self.topics.items()
            }
        )

    @classmethod
    def of(cls, data: Path) -> Truth:
        """Of a data directory, whatever process writes it."""
        with Reader.open(data) as reader:
            return cls(reader)

    def texts(self, topic: str) -> list[str]:
        return [one.text for one in self.topics[topic]]

    def payloads(self, topic: str) -> list[bytes]:
        return [one.payload for one in self.topics.get(topic, [])]

    def check_places(self, topic: str, places: Iterable[tuple[int, str]]) -> None:
        """Each text is at the offset where a client was told that it is."""
        texts = self.texts(topic)
        for offset, text in places:
            found = texts[offset : offset + 1]
            holds(found == [text], topic, offset, "is", found, "not", text)

    def under(self, prefix: str) -> list[bytes]:
        """Payloads of all topics whose names begin like this."""
        return [
            payload
            for topic in self.topics
            if topic.startswith(prefix)
            for payload in self.payloads(topic)
        ]

    def check(self, before: Truth | None, once: Iterable[str]) -> None:
        """Offsets are dense, and what was there is still there.

        In the topics ``once`` nothing is there twice: their publishers send nothing
        again, or say by an id that they do.
        """
        for name, events in self.topics.items():
            dense = [one.offset for one in events] == list(range(len(events)))
            holds(dense, name, "has gaps")
        for name in once:
            twice = [text for text, n in Counter(self.texts(name)).items() if n > 1]
            holds(not twice, name, "has", twice[:5], "twice")
        if before is not None:
            for name, events in before.topics.items():
                same = self.topics[name][: len(events)] == events
                holds(same, name, "is not what it was")


def check_priorities(
    steps: list[ConsumerStep], events: list[StoredEvent], known: list[str]
) -> None:
    """A consumer with a window of 1 never got an event while a better one waited.

    When it asked, by an ack or by subscribing, ``known`` of the confirmed events were
    known to be in the topic, so the answer may not be worse than the best of them.
    """
    by_text = {one.text: one for one in events}
    by_id = {one.id: one for one in events}
    waiting: list[tuple[int, int, str]] = []
    gone: set[str] = set()
    taken_up = 0
    for step in steps:
        if step.what == "asked":
            for text in known[taken_up : max(step.known, taken_up)]:
                heapq.heappush(waiting, _rank(by_text[text]))
            taken_up = max(step.known, taken_up)
        elif step.what == "returned":
            gone.discard(step.id)
            heapq.heappush(waiting, _rank(by_id[step.id]))
        else:
            while waiting and waiting[0][2] in gone:
                heapq.heappop(waiting)
            got = _rank(by_id[step.id])
            best = waiting[0] if waiting else got
            holds(got <= best, f"got {got} while {best} waited")
            gone.add(step.id)


def _rank(event: StoredEvent) -> tuple[int, int, str]:
    return -event.priority, event.offset, event.id


def _stored(log: BrokerLog | Reader, name: str) -> Iterator[StoredEvent]:
    offset = 0
    while batches := log.read(name, offset):
        for batch in batches:
            rows = zip(
                batch.offsets(),
                batch.ids(),
                batch.priorities(),
                batch.payloads(),
                strict=True,
            )
            for at, id_, priority, payload in rows:
                yield StoredEvent(at, id_, priority, payload)
        offset = batches[-1].end_offset
