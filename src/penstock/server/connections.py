"""Who is connected, as rows: made when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from penstock.access.peer import Peer
from penstock.delivery.consumer import Consumer
from penstock.desk.views.figures import ConnectionRow, ShareRow
from penstock.server.engine import Engine


def connection_rows(engine: Engine) -> list[ConnectionRow]:
    """Everybody at any gateway, and whoever consumes in another way."""
    consumers = _consumers(engine)
    rates = engine.broker.traffic.sent_by_subscription()
    return [
        _row(peer, consumers.get(outlet, ()), rates) for outlet, peer in _peers(engine)
    ]


def connection_counts(engine: Engine) -> dict[str, int]:
    """How many there are of each gateway."""
    return dict(Counter(peer.gateway for _, peer in _peers(engine)))


def _peers(engine: Engine) -> Iterator[tuple[object, Peer]]:
    for gateway, connection in engine.connections.items():
        connection.peer.name = gateway.who
        yield gateway, connection.peer
    for outlet in engine.members:
        peer = getattr(outlet, "peer", None)
        if isinstance(peer, Peer):
            yield outlet, peer


def _consumers(engine: Engine) -> dict[object, list[Consumer]]:
    """By their outlets."""
    found: dict[object, list[Consumer]] = {}
    for subscription in engine.broker.subscriptions:
        for consumer in subscription.consumers:
            found.setdefault(consumer.outlet, []).append(consumer)
    return found


def _row(
    peer: Peer, consumers: list[Consumer] | tuple[()], rates: dict[int, float]
) -> ConnectionRow:
    return ConnectionRow(
        number=peer.number,
        gateway=peer.gateway,
        peer=peer.address,
        name=peer.name,
        since_ms=int(peer.since_s * 1000),
        bytes_in=peer.bytes_in,
        bytes_out=peer.bytes_out,
        subscriptions=[_share(consumer) for consumer in consumers],
        rate=round(sum((_rate(one, rates) for one in consumers), 0.0), 1),
    )


def _share(consumer: Consumer) -> ShareRow:
    subscription = consumer.subscription
    return ShareRow(
        subscriber=subscription.subscriber,
        topic=subscription.topic,
        window=consumer.prefetch or subscription.policy.window,
        in_flight=subscription.owed.count_of(consumer),
        lag=subscription.lag(),
    )


def _rate(consumer: Consumer, rates: dict[int, float]) -> float:
    """Its part of what the subscription takes: who shares one, shares alike."""
    subscription = consumer.subscription
    return rates.get(subscription.number, 0.0) / max(len(subscription.consumers), 1)
