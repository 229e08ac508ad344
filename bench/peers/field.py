"""Who runs, at what, and which ratios were promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.peers import nats, penstock_server, rabbit, redis, sink
from bench.peers.processes import Server

SIZES = {"100 B": 100, "1 KiB": 1024}
SMALL = {"100 B": 100}
SYNC, OS = "Penstock sync", "Penstock os"
NATS, NATS_ALWAYS = "NATS JetStream", "NATS JetStream always"
REDIS, REDIS_ALWAYS = "Redis Streams everysec", "Redis Streams always"
VALKEY, VALKEY_ALWAYS = "Valkey Streams everysec", "Valkey Streams always"
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

    def adapter_for(self, workload: str) -> str:
        return dict(self.adapters).get(workload, self.adapter)


def _penstock(variant: str, *, synced: bool) -> Contender:
    return Contender(
        system="Penstock",
        start=penstock_server.start,
        variant=variant,
        adapter="bench.peers.penstock_line:Line",
        adapters=(("consume", "bench.peers.penstock_native:LineIn"),),
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


def _other_way(adapter: str, kind: str) -> Contender:
    """Penstock through another gateway, for one kind of workload."""
    return Contender(
        system="Penstock",
        start=penstock_server.start,
        variant="sync",
        adapter=adapter,
        synced=True,
        kinds=(kind,),
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
    f"{SYNC}, line in and out": _other_way("bench.peers.penstock_line:Line", "consume"),
    NATS: _nats("default", synced=False),
    NATS_ALWAYS: _nats("always", synced=True),
    REDIS: _redis("Redis", "everysec", synced=False),
    REDIS_ALWAYS: _redis("Redis", "always", synced=True),
    VALKEY: _redis("Valkey", "everysec", synced=False),
    VALKEY_ALWAYS: _redis("Valkey", "always", synced=True),
    CLASSIC: _rabbit("classic"),
    QUORUM: _rabbit("quorum"),
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
    """One thing to measure; ``kind`` is the loader's word for it."""

    kind: str
    in_flight: int
    sizes: dict[str, int]
    topics: int = 1
    subscribers: int = 0
    # Who does not take part, and why.
    without: tuple[tuple[str, str], ...] = ()


TOO_MANY_QUORUM = "a thousand quorum queues are a thousand Raft groups"
WORKLOADS = {
    "publish, 4 000 in flight": Workload(kind="publish", in_flight=4000, sizes=SIZES),
    "publish, 256 in flight": Workload(kind="publish", in_flight=256, sizes=SIZES),
    "one at a time": Workload(kind="latency", in_flight=1, sizes=SIZES),
    "publish, deliver, ack": Workload(kind="consume", in_flight=4000, sizes=SIZES),
    "1 000 topics": Workload(
        kind="publish",
        in_flight=4000,
        sizes=SMALL,
        topics=1000,
        without=(
            (QUORUM, TOO_MANY_QUORUM),
            (OS, "topics are made one by one"),
        ),
    ),
    "fan-out to 1 000": Workload(
        kind="fan-out",
        in_flight=200,
        sizes=SMALL,
        subscribers=1000,
        without=((QUORUM, TOO_MANY_QUORUM),),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Target:
    """``ours`` shall be at least so many times as fast as ``theirs``."""

    workload: str
    theirs: str
    ours: str
    at_least: float


_PUBLISH, _FEW, _SINGLE, _THROUGH, _, FAN_OUT = WORKLOADS
# The peer is the fastest of those that have it on disk, whoever that is.
BEST_SYNCED = "the best that syncs"
TARGETS = tuple(
    Target(workload=workload, theirs=theirs, ours=ours, at_least=least)
    for workload, theirs, ours, least in (
        (_PUBLISH, REDIS_ALWAYS, SYNC, 3),
        (_PUBLISH, QUORUM, SYNC, 4),
        (_PUBLISH, NATS_ALWAYS, SYNC, 50),
        (_PUBLISH, NATS, SYNC, 1.5),
        (_PUBLISH, REDIS, OS, 1),
        (_FEW, REDIS_ALWAYS, SYNC, 1.5),
        (_SINGLE, BEST_SYNCED, SYNC, 0.8),
        (_THROUGH, NATS, SYNC, 2),
        (_THROUGH, REDIS, OS, 3),
    )
)
# Deliveries a second, over all readers.
FAN_OUT_LEAST = 300_000
