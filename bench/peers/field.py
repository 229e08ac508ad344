"""Who runs, and at what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers import kafka, nats, penstock_server, rabbit, redis, sink
from bench.peers.processes import Server

SIZES = {"100 B": 100, "1 KiB": 1024}
SMALL = {"100 B": 100}
SYNC, OS = "Penstock sync", "Penstock os"
NATS, NATS_ALWAYS = "NATS JetStream", "NATS JetStream always"
REDIS, REDIS_ALWAYS = "Redis Streams everysec", "Redis Streams always"
VALKEY, VALKEY_ALWAYS = "Valkey Streams everysec", "Valkey Streams always"
KAFKA, KAFKA_FLUSHED = "Kafka", "Kafka flushed"
CLASSIC, QUORUM = "RabbitMQ classic", "RabbitMQ quorum"
SINK = "sink (the loader alone)"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system in one of its settings."""

    system: str
    start: Callable[[Path, str], Server]
    variant: str
    adapter: str
    # Other adapters for some workloads.
    adapters: tuple[tuple[str, str], ...] = ()
    # Does the disk have an event before it is confirmed?
    synced: bool = False
    # One server for the whole run, because it is slow to start.
    shared: bool = False
    # The kinds of workloads to take part in, if not all.
    kinds: tuple[str, ...] = ()

    def takes_part(self, kind: str) -> bool:
        return not self.kinds or kind in self.kinds

    def adapter_for(self, workload: str) -> str:
        return dict(self.adapters).get(workload, self.adapter)


def _penstock(variant: str, *, synced: bool) -> Contender:
    return Contender(
        system="Penstock",
        start=penstock_server.start,
        variant=variant,
        adapter="bench.peers.penstock_line:Line",
        adapters=tuple(
            (kind, "bench.peers.penstock_native:LineIn")
            for kind in ("consume", "each", "fan-out")
        ),
        synced=synced,
    )


def _nats(variant: str, *, synced: bool) -> Contender:
    return Contender(
        system="NATS",
        start=nats.start,
        variant=variant,
        adapter="bench.peers.nats:Nats",
        synced=synced,
    )


def _redis(system: str, variant: str, *, synced: bool) -> Contender:
    return Contender(
        system=system,
        start=redis.start if system == "Redis" else redis.start_valkey,
        variant=variant,
        adapter="bench.peers.redis:Redis",
        synced=synced,
    )


def _rabbit(variant: str) -> Contender:
    return Contender(
        system="RabbitMQ",
        start=rabbit.start,
        variant=variant,
        adapter="bench.peers.rabbit:Rabbit",
        synced=True,
        shared=True,
    )


def _kafka(variant: str, *, synced: bool) -> Contender:
    return Contender(
        system="Kafka",
        start=kafka.start,
        variant=variant,
        adapter="bench.peers.kafka:Kafka",
        synced=synced,
        shared=True,
        kinds=("publish", "latency"),
    )


def _other_way(adapter: str, *kinds: str) -> Contender:
    """Penstock through another gateway, for some kinds of workloads."""
    return Contender(
        system="Penstock",
        start=penstock_server.start,
        variant="sync",
        adapter=adapter,
        synced=True,
        kinds=kinds,
    )


CONTENDERS = {
    SYNC: _penstock("sync", synced=True),
    OS: _penstock("os", synced=False),
    f"{SYNC}, native gateway": _other_way(
        "bench.peers.penstock_native:Native", "publish"
    ),
    f"{SYNC}, native in and out": _other_way(
        "bench.peers.penstock_native:Native", "consume"
    ),
    f"{SYNC}, line in and out": _other_way(
        "bench.peers.penstock_line:Line", "consume", "fan-out"
    ),
    NATS: _nats("default", synced=False),
    NATS_ALWAYS: _nats("always", synced=True),
    REDIS: _redis("Redis", "everysec", synced=False),
    REDIS_ALWAYS: _redis("Redis", "always", synced=True),
    VALKEY: _redis("Valkey", "everysec", synced=False),
    VALKEY_ALWAYS: _redis("Valkey", "always", synced=True),
    CLASSIC: _rabbit("classic"),
    QUORUM: _rabbit("quorum"),
    KAFKA: _kafka("unflushed", synced=False),
    KAFKA_FLUSHED: _kafka("flushed", synced=True),
    SINK: Contender(
        system="sink",
        start=sink.start,
        variant="",
        adapter="bench.peers.sink:Sink",
        kinds=("publish", "latency"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One thing to measure."""

    # What it is chosen by, and under which heading it is told of.
    group: str
    # The loader's word for what it does.
    kind: str
    in_flight: int
    sizes: dict[str, int]
    topics: int = 1
    subscribers: int = 0
    # Whether readers of the fan-out answer what they get.
    acknowledged: bool = True
    # Who does not take part, and why.
    without: tuple[tuple[str, str], ...] = ()


MANY_QUORUM = (QUORUM, "a thousand quorum queues are a thousand Raft groups")
ONE_BY_ONE = (OS, "topics of another durability are made one by one")
PUBLISH, FEW = "publish, 4 000 in flight", "publish, 256 in flight"
SINGLE = "one at a time"
THROUGH = "publish, deliver, ack"
TOPICS_10, TOPICS_100, TOPICS = "10 topics", "100 topics", "1 000 topics"
EACH = "1 000 topics, a subscriber each"
FAN_ACKS, FAN_NONE = "fan-out to 1 000, all acknowledge", "fan-out to 1 000, no acks"
WORKLOADS = {
    PUBLISH: Workload(group="publish", kind="publish", in_flight=4000, sizes=SIZES),
    FEW: Workload(group="publish", kind="publish", in_flight=256, sizes=SIZES),
    SINGLE: Workload(group="latency", kind="latency", in_flight=1, sizes=SIZES),
    TOPICS_10: Workload(
        group="topics",
        kind="publish",
        in_flight=4000,
        sizes=SMALL,
        topics=10,
        without=(ONE_BY_ONE,),
    ),
    TOPICS_100: Workload(
        group="topics",
        kind="publish",
        in_flight=4000,
        sizes=SMALL,
        topics=100,
        without=(ONE_BY_ONE, MANY_QUORUM),
    ),
    TOPICS: Workload(
        group="topics",
        kind="publish",
        in_flight=4000,
        sizes=SIZES,
        topics=1000,
        without=(ONE_BY_ONE, MANY_QUORUM),
    ),
    THROUGH: Workload(group="consume", kind="consume", in_flight=4000, sizes=SIZES),
    EACH: Workload(
        group="consume",
        kind="each",
        in_flight=4000,
        sizes=SMALL,
        topics=1000,
        subscribers=1000,
        without=(ONE_BY_ONE, MANY_QUORUM),
    ),
    FAN_ACKS: Workload(
        group="fan-out",
        kind="fan-out",
        in_flight=200,
        sizes=SMALL,
        subscribers=1000,
        without=(MANY_QUORUM,),
    ),
    FAN_NONE: Workload(
        group="fan-out",
        kind="fan-out",
        in_flight=200,
        sizes=SMALL,
        subscribers=1000,
        acknowledged=False,
        without=(
            MANY_QUORUM,
            (f"{SYNC}, line in and out", "the line gateway wants every event acked"),
        ),
    ),
}
