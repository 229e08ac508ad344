"""Samples of the newest events: who published them, and which topics caused them.

A bounded number is looked at each time. Where a parent is, is known of batches that
were sampled lately (generated ids of a batch share their beginning), or else looked up
in the index of chains, some at a look.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import TypeVar

from penstock.broker.broker import Broker
from penstock.chains.keys import uuid_value
from penstock.log import Batch, Column, StoredTopic

Key = TypeVar("Key", int, str)
Value = TypeVar("Value")

# Of one look: events of each topic, and parents that are looked up.
LOOK_EVENTS = 100
LOOK_PARENTS = 200
# Older samples count half when a topic has so many.
KEPT_EVENTS = 2_000
# Names of publishers, types or causes of one topic.
MAX_NAMES = 100
# Batches whose topics are known.
MAX_BATCHES = 10_000
# Ids that were looked up, found or not.
MAX_LOOKED_UP = 10_000
# What an event is called that says so.
TYPE = "type"
UNNAMED = ""


class Samples:
    """What was seen of one topic's events."""

    __slots__ = ("causes", "events", "next", "producers", "types")

    def __init__(self) -> None:
        self.next = 0
        """Behind the last event that was looked at."""
        self.events = 0
        self.producers: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.types: dict[str, Counter[str]] = {}
        """Types of events, by the topic that caused them."""

    def age(self) -> None:
        """Let what comes count more than what was."""
        if self.events > KEPT_EVENTS:
            self.events //= 2
            for counts in (self.producers, self.causes, *self.types.values()):
                for name in list(counts):
                    counts[name] //= 2
                for name, _ in counts.most_common()[MAX_NAMES:]:
                    del counts[name]


class Sampler:
    def __init__(self, broker: Broker) -> None:
        self.seen = self.parents = self.unknown = 0
        """Events that were looked at, those with a parent, those with a lost one."""
        self._broker = broker
        self._samples: dict[int, Samples] = {}
        self._batches: OrderedDict[int, str] = OrderedDict()
        """First 96 bits of generated ids -> topic."""
        self._homes: OrderedDict[str, str | None] = OrderedDict()
        """Ids that were looked up -> topic."""

    def of(self, topic: StoredTopic) -> Samples:
        """What was seen of a topic."""
        return self._samples.setdefault(topic.id, Samples())

    def look(self, topics: list[StoredTopic]) -> None:
        """Sample what came to these topics since the last look."""
        waiting: list[tuple[Samples, list[str | None], list[str]]] = []
        for topic in topics:
            samples = self.of(topic)
            first = max(samples.next, topic.end_offset - LOOK_EVENTS)
            for part in self._parts(topic, first):
                waiting.append((samples, *self._note(samples, part)))
            samples.next = topic.end_offset
        # Only now: an event and its cause may have come since the last look.
        lookups = LOOK_PARENTS
        for samples, parents, types in waiting:
            lookups = self._note_causes(samples, parents, types, lookups)
            samples.age()

    def _parts(self, topic: StoredTopic, offset: int) -> Iterator[Batch]:
        offset = max(offset, topic.start_offset)
        while offset < topic.end_offset:
            page = self._broker.pages.at(topic.name, offset)
            if page is None:
                return
            batch = page.batch.since(offset)
            if len(batch):
                yield batch
            offset = page.end

    def _note(
        self, samples: Samples, batch: Batch
    ) -> tuple[list[str | None], list[str]]:
        """Count publishers; the parents and types of the events."""
        columns, count = batch.columns(), len(batch)
        self.seen += count
        samples.events += count
        producers = batch.producers() if Column.PRODUCER in columns else [None] * count
        samples.producers.update(name or UNNAMED for name in producers)
        prefix = int.from_bytes(batch.header.id_base, "big") >> 32
        _remember(self._batches, prefix, batch.topic, MAX_BATCHES)
        if Column.PARENT not in columns:
            return [], []
        headers = batch.headers() if Column.HEADERS in columns else []
        return batch.parents(), [one.get(TYPE, "") for one in headers]

    def _note_causes(
        self,
        samples: Samples,
        parents: list[str | None],
        types: list[str],
        lookups: int,
    ) -> int:
        """Count the topics of parents; how many may still be looked up."""
        for at, parent in enumerate(parents):
            if parent is None:
                continue
            self.parents += 1
            home = self._known_home(parent)
            if home is None and parent not in self._homes and lookups > 0:
                lookups -= 1
                home = self._broker.chains.topic_of(parent)
                _remember(self._homes, parent, home, MAX_LOOKED_UP)
            if home is None:
                self.unknown += 1
                continue
            samples.causes[home] += 1
            if types and types[at]:
                samples.types.setdefault(home, Counter())[types[at]] += 1
        return lookups

    def _known_home(self, parent: str) -> str | None:
        value = uuid_value(parent)
        home = None if value is None else self._batches.get(value >> 32)
        return home or self._homes.get(parent)


def _remember(
    known: OrderedDict[Key, Value], key: Key, value: Value, most: int
) -> None:
    known[key] = value
    if len(known) > most:
        known.popitem(last=False)
