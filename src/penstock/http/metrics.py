"""``/metrics``: the broker's figures as Prometheus has them; see docs/metrics.md.

Everything is read when a client asks. Labels are bounded: so many topics have series of
their own, those that got the most when there was room, and keep them while they exist;
all others are one, ``_other``.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from heapq import nlargest

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from penstock import __version__
from penstock.access.account import bytes_of
from penstock.access.quota import NAMES
from penstock.broker.broker import Broker
from penstock.broker.traffic import SYNC_BUCKETS
from penstock.desk.figures import Figures, Standing
from penstock.log import StoredTopic

OTHER = "_other"
NO_CONSUMERS = Standing(0, 0, 0)


class Metrics:
    """Renders them, in the format that is asked for."""

    def __init__(self, broker: Broker, figures: Figures, topics: int) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(BrokerCollector(broker, figures, topics))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The page, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


class BrokerCollector(Collector):
    def __init__(self, broker: Broker, figures: Figures, topics: int) -> None:
        self._broker = broker
        self._figures = figures
        self._chosen = ChosenTopics(topics)

    def collect(self) -> Iterable[Metric]:
        yield from self._traffic()
        yield from self._state()
        yield from self._mqtt()
        yield from self._quotas()
        yield from self._topics()

    def _traffic(self) -> Iterator[Metric]:
        traffic = self._broker.traffic
        info = GaugeMetricFamily(
            "penstock_build_info", "Always 1.", labels=["version", "python"]
        )
        info.add_metric([__version__, platform.python_version()], 1)
        yield info
        yield _gauge("start_time_seconds", "When it was started.", traffic.began_s)
        yield _counter("events_in", "Events stored.", traffic.stored)
        yield _counter("events_out", "Events sent to consumers.", traffic.sent)
        yield _counter("bytes_in", "Bytes of events stored.", traffic.stored_bytes)
        yield _counter("bytes_out", "About the bytes sent.", traffic.sent_bytes)
        yield _counter("commits", "Groups committed.", traffic.commits)
        yield _counter("commit_failures", "Groups taken back.", traffic.failed_commits)
        buckets, reached = [], 0
        for bound, count in zip(
            [*map(str, SYNC_BUCKETS), "+Inf"], traffic.buckets, strict=True
        ):
            reached += count
            buckets.append((bound, float(reached)))
        yield HistogramMetricFamily(
            "penstock_sync_seconds",
            "How long commits took to be on disk.",
            buckets=buckets,
            sum_value=traffic.sync_s,
        )

    def _state(self) -> Iterator[Metric]:
        figures, broker = self._figures, self._broker
        standings = figures.standings().values()
        lag = sum(one.lag for one in standings)
        unsettled = sum(one.unsettled for one in standings)
        yield _gauge("lag_events", "Not settled, over all subscriptions.", lag)
        yield _gauge("unsettled_events", "Sent and not settled.", unsettled)
        letters = figures.dead_letters()
        yield _gauge("dead_letters_open", "Neither republished nor dropped.", letters)
        yield _gauge("topics", "Topics, without Penstock's own.", len(figures.names()))
        count = len(broker.subscriptions)
        yield _gauge("subscriptions", "Subscriptions of all topics.", count)
        connections = GaugeMetricFamily(
            "penstock_connections", "Connections.", labels=["gateway"]
        )
        if figures.process is not None:
            for name, number in figures.process.connection_counts().items():
                connections.add_metric([name], number)
        yield connections
        yield from self._logins()
        disk = figures.disk()
        yield _gauge("disk_used_bytes", "Segments and journal.", disk.used_bytes)
        if disk.free_bytes is not None:
            yield _gauge("disk_free_bytes", "Left on the disk.", disk.free_bytes)

    def _logins(self) -> Iterator[Metric]:
        traffic = self._broker.traffic
        for name, about, counts in (
            ("failures", "Wrong users, passwords and tokens.", traffic.failed_logins),
            ("refusals", "Not even looked at.", traffic.refused_logins),
        ):
            family = CounterMetricFamily(
                f"penstock_login_{name}", about, labels=["gateway"]
            )
            for gateway, number in {"http": 0, **counts}.items():
                family.add_metric([gateway], number)
            yield family

    def _mqtt(self) -> Iterator[Metric]:
        sessions = GaugeMetricFamily(
            "penstock_mqtt_sessions", "Sessions of MQTT.", labels=["state"]
        )
        packet_ids = GaugeMetricFamily(
            "penstock_mqtt_in_flight_packets",
            "Packets of QoS 1 and 2 that wait for an answer.",
            labels=["direction"],
        )
        away = filters = sent = received = 0
        for one in self._broker.sessions:
            away += one.outlet is None
            filters += len(one.topic_filters)
            sent += len(one.packet_ids)
            received += len(one.packet_ids.received)
        connected = len(self._broker.sessions) - away
        for state, number in (("connected", connected), ("away", away)):
            sessions.add_metric([state], number)
        for direction, number in (("out", sent), ("in", received)):
            packet_ids.add_metric([direction], number)
        yield from (sessions, packet_ids)
        yield _gauge("mqtt_filters", "Filters that they subscribe to.", filters)
        retained = len(self._broker.retained)
        yield _gauge("mqtt_retained_messages", "Topics that have one.", retained)

    def _quotas(self) -> Iterator[Metric]:
        accounts = self._broker.accounts
        for name, about, counts in (
            ("quota_refusals", "What a user's quota did not allow.", accounts.refusals),
            ("quota_waits", "How often a user had to wait.", accounts.waits),
        ):
            family = CounterMetricFamily(f"penstock_{name}", about, labels=["quota"])
            for quota in NAMES:
                family.add_metric([quota], counts[quota])
            yield family

    def _topics(self) -> Iterator[Metric]:
        catalog = [one for one in self._broker.log.each_topic() if one.name[0] != "$"]
        standings = self._figures.standings()
        chosen, others = self._chosen.choose(catalog)
        rows = [(one.name, [one], float(one.end_offset)) for one in chosen]
        if others or self._chosen.other_total:
            rows.append((OTHER, others, self._chosen.other_total))
        label = ["topic"]
        stored = CounterMetricFamily(
            "penstock_topic_events_in", "Events ever stored.", labels=label
        )
        kept = GaugeMetricFamily(
            "penstock_topic_events", "Events there are.", labels=label
        )
        size = GaugeMetricFamily("penstock_topic_bytes", "Bytes of them.", labels=label)
        lag = GaugeMetricFamily(
            "penstock_topic_lag_events", "Not settled.", labels=label
        )
        readers = GaugeMetricFamily(
            "penstock_topic_subscriptions", "Subscriptions.", labels=label
        )
        for name, topics, total in rows:
            known = [standings.get(one.name, NO_CONSUMERS) for one in topics]
            stored.add_metric([name], total)
            events = sum(one.end_offset - one.start_offset for one in topics)
            kept.add_metric([name], events)
            size.add_metric([name], sum(map(bytes_of, topics)))
            lag.add_metric([name], sum(one.lag for one in known))
            readers.add_metric([name], sum(one.subscriptions for one in known))
        yield from (stored, kept, size, lag, readers)


class ChosenTopics:
    """Which topics have series of their own; a choice lasts as long as the topic."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chosen: dict[int, None] = {}
        self._ends: dict[int, int] = {}
        """Of the others, as they were the last time."""
        self.other_total = 0.0
        """What the others got, ever growing whichever topics they are."""

    def choose(
        self, catalog: list[StoredTopic]
    ) -> tuple[list[StoredTopic], list[StoredTopic]]:
        """Those of their own, by name, and the others."""
        there = {one.id for one in catalog}
        self._chosen = {id_: None for id_ in self._chosen if id_ in there}
        free = [one for one in catalog if one.id not in self._chosen]
        room = self._most - len(self._chosen)
        for one in nlargest(room, free, key=lambda topic: topic.end_offset):
            self._chosen[one.id] = None
        chosen = [one for one in catalog if one.id in self._chosen]
        others = [one for one in catalog if one.id not in self._chosen]
        self._count(others)
        return sorted(chosen, key=lambda topic: topic.name), others

    def _count(self, others: list[StoredTopic]) -> None:
        for one in others:
            before = self._ends.get(one.id, 0)
            self.other_total += max(one.end_offset - before, 0)
        self._ends = {one.id: one.end_offset for one in others}


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"penstock_{name}", about, value)


def _counter(name: str, about: str, value: float) -> Metric:
    return CounterMetricFamily(f"penstock_{name}", about, value)
