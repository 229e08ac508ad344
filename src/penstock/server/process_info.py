"""What is around the broker, for its desk: connections, settings, processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import msgspec

from penstock.access.peer import Peer
from penstock.delivery.consumer import Consumer
from penstock.desk.views.figures import (
    ConnectionRow,
    Pipeline,
    Processes,
    SettingRow,
    ShareRow,
)
from penstock.server.engine import Engine
from penstock.server.processes import ProcessWatch
from penstock.server.settings import LOG_HELP, Settings

DEFAULT = "default"
MASK = "********"
# In names of settings whose values are not shown.
SECRET = ("password", "secret", "token", "headers")


def setting_rows(settings: Settings) -> list[SettingRow]:
    """In the order of the tables. What is secret is masked."""
    rows = []
    for table in fields(settings):
        options = getattr(settings, table.name)
        if not is_dataclass(options):
            continue  # the origins
        for one in fields(options):
            key = f"{table.name}.{one.name}"
            rows.append(
                SettingRow(
                    key=key,
                    value=_shown(one.name, getattr(options, one.name)),
                    default=_shown(one.name, one.default),
                    origin=settings.origins.get(key, DEFAULT),
                    help=one.metadata.get("help") or LOG_HELP.get(key, ""),
                )
            )
    return rows


def _shown(name: str, value: object) -> str | int | float | bool | None:
    if value is not None and any(word in name for word in SECRET):
        return MASK
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


# Longer ago than this: it is not running any more.
STALE_MS = 10_000
# A row is some hundred bytes: whatever is larger is not its file.
MAX_BYTES = 1 << 20

_decode = msgspec.json.Decoder(Pipeline).decode
NOT_RUNNING = Pipeline(running=False, stages=[], at_ms=None)


def pipeline_status(path: str | None, now_ms: int) -> Pipeline:
    """The stages as they were told last; none if no pipeline tells."""
    if path is None:
        return NOT_RUNNING
    try:
        with Path(path).open("rb") as file:
            status = _decode(file.read(MAX_BYTES))
    except (OSError, msgspec.DecodeError):
        return NOT_RUNNING
    fresh = status.at_ms is not None and now_ms - status.at_ms < STALE_MS
    return msgspec.structs.replace(status, running=status.running and fresh)


def connection_rows(engine: Engine) -> list[ConnectionRow]:
    """Every client at any gateway, and those that consume in another way."""
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


class ServerProcessInfo:
    """See broker.figures.Around. A program that embeds a broker has no settings."""

    def __init__(self, engine: Engine, settings: Settings | None = None) -> None:
        self._engine = engine
        self._settings = settings
        self._watch = ProcessWatch()

    def connections(self) -> list[ConnectionRow]:
        return connection_rows(self._engine)

    def connection_counts(self) -> dict[str, int]:
        return connection_counts(self._engine)

    def settings(self) -> list[SettingRow]:
        return [] if self._settings is None else setting_rows(self._settings)

    def processes(self) -> Processes:
        return self._watch.look(self.pipeline())

    def pipeline(self) -> Pipeline:
        path = None if self._settings is None else self._settings.http.pipeline_status
        return pipeline_status(path, int(self._engine.now_s() * 1000))
