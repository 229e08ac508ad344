"""Samples -> rows of the table, with ratios and what was promised."""

from __future__ import annotations

from collections.abc import Mapping

from bench.embedded.field import (
    ASYNC,
    LEAST,
    LEAST_REPLAYED,
    LOG,
    MOST_COST_US,
    PENSTOCK,
    Workload,
)
from bench.rounds import Row, Sample


def rows_of(title: str, workload: Workload, samples: Mapping[str, Sample]) -> list[Row]:
    """One row a contender."""
    return [_row(title, workload, name, samples) for name in samples]


def _row(
    title: str, workload: Workload, name: str, samples: Mapping[str, Sample]
) -> Row:
    sample = samples[name]
    ratio, target, met = "", "", None
    if workload.kind == "cost":
        ratio, target, met = _cost(name, samples)
    elif workload.kind == "replay" and name == workload.ours:
        target = f"at least {LEAST_REPLAYED} events/s"
        met = sample.events_per_s >= LEAST_REPLAYED
    elif workload.ours in samples and workload.contenders[name].system != PENSTOCK:
        ratio, target, met = _beside(workload, name, samples)
    return Row(
        benchmark=title,
        case=f"{sample.bytes // sample.events} B",
        contender=name,
        rate=f"{sample.events_per_s:.0f} events/s",
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio=ratio,
        target=target,
        met=met,
    )


def _beside(
    workload: Workload, name: str, samples: Mapping[str, Sample]
) -> tuple[str, str, bool | None]:
    """How many times as fast Penstock is; the target is for a system's best."""
    times = samples[workload.ours].events_per_s / samples[name].events_per_s
    ratio = f"Penstock {times:.1f}x of it"
    system = workload.contenders[name].system
    if workload.kind != "handle" or name != _best(workload, system, samples):
        return ratio, "", None
    return ratio, f"Penstock at least {LEAST[system]:g}x", times >= LEAST[system]


def _best(workload: Workload, system: str, samples: Mapping[str, Sample]) -> str:
    names = [one for one in samples if workload.contenders[one].system == system]
    return max(names, key=lambda one: samples[one].events_per_s)


def _cost(name: str, samples: Mapping[str, Sample]) -> tuple[str, str, bool | None]:
    """Microseconds of CPU for each event beyond those of the log."""
    if name == LOG or LOG not in samples:
        return "", "", None
    more = samples[name].cpu_s_per_million - samples[LOG].cpu_s_per_million
    text = f"{more:.1f} µs an event beyond the log"
    if name != ASYNC:
        return text, "", None
    return text, f"under {MOST_COST_US:g} µs", more < MOST_COST_US
