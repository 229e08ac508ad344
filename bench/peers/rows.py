"""Samples -> rows of the table, with ratios and targets beside the peers."""

from __future__ import annotations

from collections.abc import Mapping

from bench.peers.field import (
    BEST_SYNCED,
    CONTENDERS,
    FAN_OUT,
    FAN_OUT_LEAST,
    SYNC,
    TARGETS,
    Target,
)
from bench.rounds import Row, Sample

NO_PEERS = ("Penstock", "sink")
# A client this busy may be what was measured.
BUSY = 0.9


def rows_of(workload: str, case: str, samples: Mapping[str, Sample]) -> list[Row]:
    """One row a contender; a peer's ratio says how many times as fast Penstock is."""
    return [_row(workload, case, name, samples) for name in samples]


def _row(workload: str, case: str, name: str, samples: Mapping[str, Sample]) -> Row:
    sample = samples[name]
    target = _target(workload, name, samples)
    ours = target.ours if target else SYNC
    ratio = _ratio(ours, name, samples)
    text, met = "", None
    if target is not None:
        text = f"{target.ours} at least {target.at_least:g}x"
        met = None if ratio is None else ratio >= target.at_least
    elif workload == FAN_OUT and name == SYNC:
        text = f"at least {FAN_OUT_LEAST} deliveries/s"
        met = sample.events_per_s >= FAN_OUT_LEAST
    return Row(
        benchmark=workload,
        case=case,
        contender=name,
        rate=_rate(workload, sample),
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio="" if ratio is None else f"{ours} {ratio:.2f}x of it",
        target=text,
        met=met,
    )


def _target(workload: str, name: str, samples: Mapping[str, Sample]) -> Target | None:
    for target in TARGETS:
        theirs = target.theirs
        if theirs == BEST_SYNCED:
            theirs = _best_synced(samples)
        if target.workload == workload and theirs == name:
            return target
    return None


def _best_synced(samples: Mapping[str, Sample]) -> str:
    rates = {
        name: sample.events_per_s
        for name, sample in samples.items()
        if CONTENDERS[name].synced and CONTENDERS[name].system not in NO_PEERS
    }
    return max(rates, key=rates.__getitem__, default="")


def _ratio(ours: str, name: str, samples: Mapping[str, Sample]) -> float | None:
    if ours not in samples or CONTENDERS[name].system in NO_PEERS:
        return None
    return samples[ours].events_per_s / samples[name].events_per_s


def _rate(workload: str, sample: Sample) -> str:
    rate = f"{sample.events_per_s:.0f} events/s"
    if workload == FAN_OUT:
        rate = f"{sample.events_per_s:.0f} deliveries/s"
    if "p50_us" in sample.facts:
        low, high = sample.facts["p50_us"], sample.facts["p99_us"]
        return f"p50 {low:.0f} µs, p99 {high:.0f} µs, {rate}"
    if sample.facts.get("client_cpu_s", 0) > BUSY * sample.seconds:
        rate += " (client at its limit)"
    return rate
