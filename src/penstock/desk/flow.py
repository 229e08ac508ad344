"""Which way events go: who publishes where, who takes what, which topic causes which.

Deliveries are counted by broker/traffic.py. Publishers and causes stand in the events
themselves, so while somebody looks, the newest events of topics are sampled
(flow_samples.py); their shares of a topic's rate are the rates of the edges. When
nobody has looked for a while, all of it is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from typing import TYPE_CHECKING

from penstock.broker.broker import Broker
from penstock.delivery.subscription import Subscription
from penstock.desk.flow_samples import Sampler
from penstock.desk.views.figures import (
    EdgeKind,
    Flow,
    FlowEdge,
    FlowNode,
    NodeKind,
    Sampled,
)

if TYPE_CHECKING:
    from penstock.desk.figures import Figures

# Edges of an answer, unless more are asked for, and at most.
EDGES = 500
MAX_EDGES = 2000
# Topics of one look, the most active.
LOOK_TOPICS = 100
# After so long without a look, the next one begins anew.
FORGET_MS = 60_000


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
        return self._told(names, limit)

    def _told(self, names: list[str], limit: int) -> Flow:
        rates = self._broker.traffic.sent_by_subscription()
        takers, all_takers = self._takers(rates, limit)
        edges = [*self._sampled_edges(names), *_deliveries(takers, rates)]
        found = nlargest(limit, edges, key=_busy)
        told = {edge.to for edge in found if edge.kind == "deliver"}
        sampler = self._sampler
        return Flow(
            nodes=[
                *self._topics(names, found),
                *self._publishers(found),
                *_subscribers([one for one in takers if _node(one) in told], rates),
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
        everybody = self._broker.subscriptions
        active = [one for one in everybody if one.active or one.suspended]

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
