"""Which way events go: who publishes where, who takes what, which topic causes which.

Deliveries are counted by broker/traffic.py. Publishers and causes stand in the events
themselves, so while a client looks, the newest events of topics are sampled, a bounded
number at a time; their shares of a topic's rate are the rates of the edges. Where a
parent is, is known of batches that were sampled lately (generated ids of a batch share
their beginning), or else looked up in the index of chains, some at a look. When no
client has looked for a while, all of it is forgotten.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from typing import TYPE_CHECKING, TypeVar

from penstock.broker.broker import Broker
from penstock.chains.keys import uuid_value
from penstock.delivery.subscription import Subscription
from penstock.desk.views.figures import (
    EdgeKind,
    Flow,
    FlowEdge,
    FlowNode,
    NodeKind,
    Sampled,
)
from penstock.log import Batch, Column, StoredTopic

if TYPE_CHECKING:
    from penstock.desk.figures import Figures

# Edges of an answer, unless more are asked for, and at most.
EDGES = 500
MAX_EDGES = 2000
# Topics of one look, the most active.
LOOK_TOPICS = 100
# After so long without a look, the next one begins anew.
FORGET_MS = 60_000
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
# Of the first 96 bits of an id, those that say no time.
_NO_TIME = (1 << 48) - 1
# What an event is called that says so.
TYPE = "type"
UNNAMED = ""

TallyKey = TypeVar("TallyKey", int, str)
TallyValue = TypeVar("TallyValue")


class FlowWatch:
    def __init__(self, figures: Figures, broker: Broker) -> None:
        self._figures = figures
        self._broker = broker
        self._sampler = Sampler(broker)
        self._looked_ms = 0

    def look(self, limit: int = EDGES) -> Flow:
        """Sample what came since the last look, and tell."""
        now_ms = self._broker.log.now_ms()
        if not 0 <= now_ms - self._looked_ms < FORGET_MS:
            self._sampler = Sampler(self._broker)
        self._looked_ms = now_ms
        names = self._figures.most_active(LOOK_TOPICS)
        self._sampler.look([self._broker.log.topic(name) for name in names])
        return self._flow(names, limit)

    def _flow(self, names: list[str], limit: int) -> Flow:
        rates = self._broker.traffic.sent_by_subscription()
        takers, all_takers = self._takers(rates, limit)
        edges = [*self._sampled_edges(names), *_deliveries(takers, rates)]
        found = nlargest(limit, edges, key=_busy)
        delivered = {edge.to for edge in found if edge.kind == "deliver"}
        sampler = self._sampler
        return Flow(
            nodes=[
                *self._topics(names, found),
                *self._publishers(found),
                *_subscribers(
                    [one for one in takers if _node(one) in delivered], rates
                ),
            ],
            edges=found,
            sampled=Sampled(
                events=sampler.seen, parents=sampler.parents, unknown=sampler.unknown
            ),
            more=len(found) < len(edges)
            or len(takers) < all_takers
            or len(names) < len(self._figures.names()),
        )

    def _sampled_edges(self, names: list[str]) -> Iterator[FlowEdge]:
        rates = self._broker.traffic.stored_by_topic()
        for name in names:
            samples = self._sampler.of(self._broker.log.topic(name))
            share = rates.get(name, 0.0) / max(samples.events, 1)
            for producer, count in samples.producers.items():
                yield _edge("publish", "producer", producer, name, share, count)
            for cause, count in samples.causes.items():
                types = samples.types.get(cause)
                yield _edge("cause", "topic", cause, name, share, count, types)

    def _takers(
        self, rates: Mapping[int, float], limit: int
    ) -> tuple[list[Subscription], int]:
        """The busiest subscriptions, and how many there are."""
        subscriptions = self._broker.subscriptions
        active = [one for one in subscriptions if one.active or one.suspended]

        def busy(one: Subscription) -> tuple[float, int]:
            return rates.get(one.number, 0.0), one.cursor.sent

        return nlargest(limit, active, key=busy), len(active)

    def _topics(self, names: list[str], edges: list[FlowEdge]) -> list[FlowNode]:
        """Those that were looked at, and those that edges lead to."""
        rates = self._broker.traffic.stored_by_topic()
        standings = self._figures.standings()
        ends = {end for edge in edges for end in (edge.from_, edge.to)}
        wanted = dict.fromkeys(names)
        wanted.update(dict.fromkeys(_names("topic", ends)))
        return [
            FlowNode(
                id=_id("topic", name),
                kind="topic",
                name=name,
                rate=rates.get(name, 0.0),
                lag=standings[name].lag if name in standings else 0,
            )
            for name in wanted
        ]

    def _publishers(self, edges: list[FlowEdge]) -> Iterator[FlowNode]:
        rates: dict[str, float] = {}
        for edge in edges:
            if edge.kind == "publish":
                rates[edge.from_] = rates.get(edge.from_, 0.0) + edge.rate
        for name in _names("producer", rates):
            id_ = _id("producer", name)
            rate = round(rates[id_], 1)
            yield FlowNode(id=id_, kind="producer", name=name, rate=rate)


def _deliveries(
    takers: Iterable[Subscription], rates: Mapping[int, float]
) -> Iterator[FlowEdge]:
    for one in takers:
        yield FlowEdge(
            from_=_id("topic", one.topic),
            to=_node(one),
            kind="deliver",
            rate=rates.get(one.number, 0.0),
            count=one.cursor.sent,
        )


def _subscribers(
    takers: Iterable[Subscription], rates: Mapping[int, float]
) -> Iterator[FlowNode]:
    """By name: several edges may lead to one."""
    owned: dict[str, list[Subscription]] = {}
    for one in takers:
        owned.setdefault(one.subscriber, []).append(one)
    for name, theirs in sorted(owned.items()):
        yield FlowNode(
            id=_id("subscriber", name),
            kind="subscriber",
            name=name,
            rate=round(sum(rates.get(one.number, 0.0) for one in theirs), 1),
            lag=sum(one.lag() for one in theirs),
            state=_state(theirs),
        )


def _busy(edge: FlowEdge) -> tuple[float, int]:
    return edge.rate, edge.count


def _node(one: Subscription) -> str:
    return _id("subscriber", one.subscriber)


def _edge(
    kind: EdgeKind,
    from_kind: NodeKind,
    from_: str,
    topic: str,
    share: float,
    count: int,
    types: Mapping[str, int] | None = None,
) -> FlowEdge:
    return FlowEdge(
        from_=_id(from_kind, from_),
        to=_id("topic", topic),
        kind=kind,
        rate=round(share * count, 1),
        count=count,
        types=dict(types) if types else None,
    )


def _id(kind: NodeKind, name: str) -> str:
    return f"{kind}:{name}"


def _names(kind: NodeKind, ids: Iterable[str]) -> list[str]:
    """The names of nodes of one kind, in order."""
    prefix = f"{kind}:"
    return sorted(one.removeprefix(prefix) for one in ids if one.startswith(prefix))


def _state(owned: list[Subscription]) -> str:
    """That of all of them: one that is suspended counts most, then who is here."""
    if any(one.suspended for one in owned):
        return "suspended"
    return "connected" if any(one.consumers for one in owned) else "away"


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
        """First 96 bits of generated ids, less the time if it differs -> topic."""
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
        if batch.ids_by_time:
            prefix &= _NO_TIME
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
        if value is None:
            return self._homes.get(parent)
        prefix, known = value >> 32, self._batches
        home = known.get(prefix) or known.get(prefix & _NO_TIME)
        return home or self._homes.get(parent)


def _remember(
    known: OrderedDict[TallyKey, TallyValue],
    key: TallyKey,
    value: TallyValue,
    most: int,
) -> None:
    known[key] = value
    if len(known) > most:
        known.popitem(last=False)
