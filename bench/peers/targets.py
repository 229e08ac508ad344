"""What was promised of whom, beside the rows it is about.

A target is about one cell and one contender in it, whose row tells how it came out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.peers.field import (
    CONTENDERS,
    EACH,
    FAN_ACKS,
    FAN_NONE,
    FEW,
    NATS,
    NATS_ALWAYS,
    OS,
    PUBLISH,
    QUORUM,
    REDIS,
    REDIS_ALWAYS,
    SINGLE,
    SYNC,
    THROUGH,
    TOPICS,
    TOPICS_10,
    TOPICS_100,
    VALKEY_ALWAYS,
)
from bench.rounds import Sample

NO_PEERS = ("Penstock", "sink")
# The peer is the fastest of all, or of the two that sync as they answer.
BEST, BEST_SYNCED = "the best peer", "the faster of Redis and Valkey, synced"


@dataclass(frozen=True, kw_only=True)
class Faster:
    """``ours`` shall be at least so many times as fast as ``theirs``."""

    workload: str
    # Empty: of every size.
    case: str
    theirs: str
    at_least: float
    ours: str = SYNC


@dataclass(frozen=True, kw_only=True)
class Cheaper:
    """An event shall cost Penstock at most so many times what it costs in ``base``."""

    workload: str
    base: str
    base_words: str
    # Nothing was promised, if None.
    at_most: float | None = None


SMALL, LARGE = "100 B", "1 KiB"
FASTER = tuple(
    Faster(workload=workload, case=case, theirs=theirs, at_least=least)
    for workload, case, theirs, least in (
        (PUBLISH, SMALL, BEST_SYNCED, 2.0),
        (PUBLISH, SMALL, NATS, 1.5),
        (PUBLISH, SMALL, QUORUM, 4.0),
        (PUBLISH, LARGE, BEST_SYNCED, 3.0),
        (PUBLISH, LARGE, NATS, 1.0),
        (PUBLISH, LARGE, QUORUM, 5.0),
        (PUBLISH, "", NATS_ALWAYS, 50.0),
        (FEW, "", BEST_SYNCED, 1.2),
        (SINGLE, "", BEST_SYNCED, 0.8),
        (SINGLE, SMALL, NATS_ALWAYS, 1.2),
        (TOPICS, "", BEST_SYNCED, 1.0),
        (THROUGH, SMALL, NATS, 2.0),
        (THROUGH, LARGE, NATS, 1.5),
        (FAN_ACKS, "", BEST, 1.0),
        (FAN_NONE, "", BEST, 1.0),
    )
) + tuple(
    Faster(workload=workload, case=case, theirs=REDIS, at_least=least, ours=OS)
    for workload, case, least in (
        (PUBLISH, "", 1.0),
        (THROUGH, SMALL, 2.5),
        (THROUGH, LARGE, 1.5),
    )
)
_ONE, _ONE_READ = "one topic", "one topic with one subscriber"
CHEAPER = (
    Cheaper(workload=TOPICS_10, base=PUBLISH, base_words=_ONE, at_most=1.3),
    Cheaper(workload=TOPICS_100, base=PUBLISH, base_words=_ONE, at_most=1.6),
    Cheaper(workload=TOPICS, base=PUBLISH, base_words=_ONE, at_most=2.0),
    Cheaper(workload=EACH, base=THROUGH, base_words=_ONE_READ, at_most=3.0),
)
# Deliveries a second, over all readers.
FAN_OUT_LEAST = 300_000


def faster(
    workload: str, case: str, name: str, samples: Mapping[str, Sample]
) -> Faster | None:
    """What was promised beside this contender."""
    for target in FASTER:
        if target.workload != workload or target.case not in ("", case):
            continue
        theirs = target.theirs
        if theirs == BEST:
            theirs = fastest(samples, peers())
        if theirs == BEST_SYNCED:
            theirs = fastest(samples, (REDIS_ALWAYS, VALKEY_ALWAYS))
        if theirs == name:
            return target
    return None


def cheaper(workload: str) -> Cheaper | None:
    return next((one for one in CHEAPER if one.workload == workload), None)


def peers() -> list[str]:
    return [name for name, one in CONTENDERS.items() if one.system not in NO_PEERS]


def fastest(samples: Mapping[str, Sample], names: Sequence[str]) -> str:
    speeds = {name: speed(samples[name]) for name in names if name in samples}
    return max(speeds, key=speeds.__getitem__, default="")


def speed(sample: Sample) -> float:
    """Events a second; one at a time it is the median that counts, not the rate."""
    median_us = sample.facts.get("p50_us")
    return sample.events_per_s if median_us is None else 1e6 / median_us
