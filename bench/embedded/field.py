"""Who takes part, at what, and what was promised.

Peers handle with the durability that is usual for them, which is less than Penstock's:
it syncs what was settled, they do not. Where they publish, they sync too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers import nats, penstock_server, redis
from bench.peers.adapter import Place
from bench.peers.processes import Missing, Server

PENSTOCK = "Penstock"
CELERY, FASTSTREAM = "Celery", "FastStream"
_APP = "bench.embedded.penstock_app"


def no_server(folder: Path, variant: str) -> Server:
    """The broker is in the process that uses it."""
    return Server(place=Place(ports={}, pids=[]))


def celery_worker(folder: Path, variant: str) -> Server:
    from bench.embedded import celery_worker

    return celery_worker.start(folder, variant)


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system in one of its settings."""

    system: str
    player: str
    # In one turn: each system gets as many as it needs for some tenths of a second.
    events: int
    start: Callable[[Path, str], Server] = no_server
    variant: str = ""
    options: Mapping[str, str | int] = field(default_factory=dict)
    # Packages that it needs.
    needs: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises Missing if a package is not installed."""
        for name in self.needs:
            if importlib.util.find_spec(name) is None:
                raise Missing(f"{name} is not installed (the extra bench has it)")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One thing to measure; ``ours`` is what peers are compared with."""

    kind: str
    ours: str
    contenders: Mapping[str, Contender]


def _penstock(player: str, events: int, **options: str | int) -> Contender:
    return Contender(
        system=PENSTOCK, player=f"{_APP}:{player}", events=events, options=options
    )


def _served(player: str, events: int, **options: str | int) -> Contender:
    return Contender(
        system=PENSTOCK,
        player=f"{_APP}:{player}",
        events=events,
        start=penstock_server.start,
        variant="sync",
        options=options,
    )


def _celery(player: str, events: int, pool: str) -> Contender:
    return Contender(
        system=CELERY,
        player=f"bench.embedded.celery_worker:{player}",
        events=events,
        start=celery_worker,
        variant=pool,
        needs=("celery", "redis"),
    )


def _over_nats(**options: str | int) -> Contender:
    return Contender(
        system=FASTSTREAM,
        player="bench.embedded.faststream_apps:Nats",
        events=10_000,
        start=nats.start,
        variant="default",
        options=options,
        needs=("faststream", "nats"),
    )


def _over_redis(sync: str, **options: str | int) -> Contender:
    return Contender(
        system=FASTSTREAM,
        player="bench.embedded.faststream_apps:Redis",
        events=5_000,
        start=redis.start_either,
        variant=sync,
        options=options,
        needs=("faststream", "redis"),
    )


EMBEDDED, SERVED = "Penstock, in the process", "Penstock, over a URL"
ASYNC = "Penstock, async handler, 16 at once"
LOG = "the log alone: take, read, settle, commit"
BATCHES = "Penstock, async handler of batches of 1 000"

PUBLISH = Workload(
    kind="publish",
    ours=EMBEDDED,
    contenders={
        EMBEDDED: _penstock("Publish", 40_000),
        SERVED: _served("Publish", 10_000),
        "Redis always, redis-py": Contender(
            system="Redis",
            player="bench.embedded.client_publish:Redis",
            events=5_000,
            start=redis.start,
            variant="always",
            needs=("nats", "redis"),
        ),
        "Valkey always, redis-py": Contender(
            system="Valkey",
            player="bench.embedded.client_publish:Redis",
            events=5_000,
            start=redis.start_valkey,
            variant="always",
            needs=("nats", "redis"),
        ),
        "NATS JetStream always, nats-py": Contender(
            system="NATS",
            player="bench.embedded.client_publish:Nats",
            events=3_000,
            start=nats.start,
            variant="always",
            needs=("nats", "redis"),
        ),
        "Celery delay, Redis always": Contender(
            system=CELERY,
            player="bench.embedded.celery_worker:Publish",
            events=1_000,
            start=redis.start_either,
            variant="always",
            needs=("celery", "redis"),
        ),
    },
)
HANDLE = Workload(
    kind="handle",
    ours=ASYNC,
    contenders={
        ASYNC: _penstock("Handle", 100_000),
        "Penstock, async handler, 64 at once": _penstock(
            "Handle", 100_000, concurrency=64
        ),
        "Penstock, handler in threads, 16 at once": _penstock(
            "Handle", 30_000, handler="sync"
        ),
        "Penstock, over a URL, 16 at once": _served("Handle", 20_000),
        "Penstock, over a URL, 64 at once": _served("Handle", 20_000, concurrency=64),
        "Celery prefork, 2 processes": _celery("Handle", 2_000, "prefork"),
        "Celery threads, 4 threads": _celery("Handle", 2_000, "threads"),
        "Celery solo": _celery("Handle", 2_000, "solo"),
        "FastStream, NATS JetStream, pull": _over_nats(),
        "FastStream, NATS JetStream, push": _over_nats(consumer="push", fetch=5_000),
        "FastStream, Redis Streams everysec": _over_redis("everysec"),
        "FastStream, Redis Streams everysec, 16 workers": _over_redis(
            "everysec", workers=16
        ),
        "FastStream, Redis Streams always": _over_redis("always"),
    },
)
COST = Workload(
    kind="cost",
    ours=LOG,
    contenders={
        LOG: _penstock("LogOnly", 100_000),
        ASYNC: _penstock("Handle", 100_000),
        "Penstock, handler in threads, 16 at once": _penstock(
            "Handle", 30_000, handler="sync"
        ),
        BATCHES: _penstock("Handle", 100_000, handler="batch", batch=1000),
    },
)
REPLAY = Workload(
    kind="replay",
    ours=BATCHES,
    contenders={
        BATCHES: _penstock("Replay", 1_000_000, handler="batch", batch=1000),
        ASYNC: _penstock("Replay", 200_000),
    },
)
WORKLOADS = {
    "publish, 64 publishers": PUBLISH,
    "handle a backlog, empty handler": HANDLE,
    "CPU of handling": COST,
    "replay": REPLAY,
}

# How many times as fast as the best of a system's settings.
LEAST = {CELERY: 10.0, FASTSTREAM: 5.0}
MOST_COST_US = 15.0
LEAST_REPLAYED = 200_000
