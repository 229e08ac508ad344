"""64 publishers in one Python program, each over its system's own asyncio client.

The comparison of the embedded broker has them, too; here they stand beside the raw
sockets of everybody. The CPU seconds are those of the program and the server.
"""

from __future__ import annotations

from bench.embedded import field as embedded
from bench.embedded.harness import Bench as Programs
from bench.peers.harness import Bench
from bench.rounds import Row, Sample

GROUP = NAME = "programs"
WORKLOAD, CASE = "64 publishers in Python, over a URL", "100 B"
# How many times as fast as the best of those who use redis-py.
LEAST = 2.0
REDIS_PY = ("Redis", "Valkey")


def measure(bench: Bench, peers: list[str] | None) -> dict[str, Sample]:
    contenders = {
        name: contender
        for name, contender in embedded.PUBLISH.contenders.items()
        if contender.system in (embedded.PENSTOCK, *REDIS_PY, "NATS")
        and name != embedded.EMBEDDED
        and (peers is None or contender.system in peers)
    }
    programs = Programs(
        settings=bench.settings, rounds=bench.rounds, warm_ups=bench.warm_ups
    )
    samples = programs.case(WORKLOAD, contenders)
    bench.absent.update(programs.absent)
    bench.failed.update(programs.failed)
    return samples


def rows_of(samples: dict[str, Sample]) -> list[Row]:
    ours = samples.get(embedded.SERVED)
    best = best_of(samples, REDIS_PY)
    rows = []
    for name, sample in samples.items():
        times = ours.events_per_s / sample.events_per_s if ours else None
        judged = times is not None and name == best
        rows.append(
            Row(
                benchmark=WORKLOAD,
                case=CASE,
                contender=name,
                rate=f"{sample.events_per_s:.0f} events/s",
                cpu_s_per_million=sample.cpu_s_per_million,
                ratio=""
                if times is None or sample is ours
                else f"Penstock {times:.2f}x of it",
                target=f"Penstock at least {LEAST:g}x" if judged else "",
                met=times >= LEAST if judged and times is not None else None,
            )
        )
    return rows


def best_of(samples: dict[str, Sample], systems: tuple[str, ...]) -> str:
    """The fastest of some systems."""
    theirs = {
        name: sample.events_per_s
        for name, sample in samples.items()
        if embedded.PUBLISH.contenders[name].system in systems
    }
    return max(theirs, key=theirs.__getitem__, default="")
