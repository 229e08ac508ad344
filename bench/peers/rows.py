"""Samples -> rows of the table, with ratios and targets beside the peers."""

from __future__ import annotations

from collections.abc import Mapping

from bench.peers.field import CONTENDERS, OS, SYNC, WORKLOADS
from bench.peers.targets import FAN_OUT_LEAST, NO_PEERS, Cheaper, cheaper, faster, speed
from bench.rounds import Row, Sample

# (workload, case) -> contender -> its median.
Results = Mapping[tuple[str, str], Mapping[str, Sample]]
# A client this busy may be what was measured.
BUSY = 0.9


def rows_of(workload: str, case: str, results: Results) -> list[Row]:
    """One row a contender; a peer's ratio says how many times as fast Penstock is."""
    return [_row(workload, case, name, results) for name in results[workload, case]]


def _row(workload: str, case: str, name: str, results: Results) -> Row:
    samples = results[workload, case]
    sample = samples[name]
    promise = faster(workload, case, name, samples)
    ours = promise.ours if promise else _like(name, samples)
    times = _times(ours, name, samples)
    said, targets, met = [], [], []
    if times is not None:
        said.append(f"{ours} {times:.2f}x of it")
    if promise is not None:
        targets.append(f"{ours} at least {promise.at_least:g}x")
        met += [] if times is None else [times >= promise.at_least]
    base = cheaper(workload)
    if base is not None and (cost := _cost(base, case, name, results)) is not None:
        said.append(f"{cost:.2f}x the CPU of {base.base_words}")
        if name == SYNC and base.at_most is not None:
            targets.append(f"at most {base.at_most:g}x")
            met.append(cost <= base.at_most)
    if WORKLOADS[workload].kind == "fan-out" and name == SYNC:
        targets.append(f"at least {FAN_OUT_LEAST} deliveries/s")
        met.append(sample.events_per_s >= FAN_OUT_LEAST)
    return Row(
        benchmark=workload,
        case=case,
        contender=name,
        rate=rate(workload, sample),
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio="; ".join(said),
        target="; ".join(targets),
        met=all(met) if met else None,
    )


def _like(name: str, samples: Mapping[str, Sample]) -> str:
    """Penstock as it syncs, or does not, like this contender."""
    return OS if OS in samples and not CONTENDERS[name].synced else SYNC


def _times(ours: str, name: str, samples: Mapping[str, Sample]) -> float | None:
    if ours not in samples or CONTENDERS[name].system in NO_PEERS:
        return None
    return speed(samples[ours]) / speed(samples[name])


def _cost(base: Cheaper, case: str, name: str, results: Results) -> float | None:
    """How many times the CPU of the same contender in the cell it is held against."""
    one = results.get((base.base, case), {}).get(name)
    if one is None or not one.cpu_s or CONTENDERS[name].system == "sink":
        return None
    many = results[base.workload, case][name]
    return many.cpu_s_per_million / one.cpu_s_per_million


def rate(workload: str, sample: Sample) -> str:
    rate = f"{sample.events_per_s:.0f} events/s"
    if WORKLOADS[workload].kind == "fan-out":
        rate = f"{sample.events_per_s:.0f} deliveries/s"
    if "p50_us" in sample.facts:
        low, high = sample.facts["p50_us"], sample.facts["p99_us"]
        return f"p50 {low:.0f} µs, p99 {high:.0f} µs, {rate}"
    if sample.facts.get("client_cpu_s", 0) > BUSY * sample.seconds:
        rate += " (client at its limit)"
    return rate
