"""Samples -> rows of the table, with ratios and what was promised."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence

from bench.rounds import Row, Sample


def rate(sample: Sample) -> str:
    return f"{sample.events_per_s / 1e6:.2f} M rows/s"


def plain(benchmark: str, case: str, contender: str, sample: Sample) -> Row:
    """A row that others are compared with."""
    return Row(
        benchmark=benchmark,
        case=case,
        contender=contender,
        rate=rate(sample),
        cpu_s_per_million=sample.cpu_s_per_million,
    )


def compared(
    row: Row, ratio: float, base: str, least: float | None, *, percent: bool = True
) -> Row:
    """The row with its ratio, and whether that is what was promised."""
    many = f"{ratio:.0%}" if percent else f"{ratio:.1f}x"
    wanted = "" if least is None else f"{least:.0%}" if percent else f"{least:g}x"
    return dataclasses.replace(
        row,
        ratio=f"{many} of {base}",
        target=f"at least {wanted}" if least is not None else "",
        met=None if least is None else ratio >= least,
    )


def beaten(row: Row, times: float, least: float) -> Row:
    """The row of somebody who is to be so many times as slow as Penstock."""
    return dataclasses.replace(
        row,
        ratio=f"Penstock {times:.1f}x of it",
        target=f"Penstock at least {least:g}x",
        met=times >= least,
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value that this part of the values is not above."""
    ordered = sorted(values)
    return ordered[min(int(part * len(ordered)), len(ordered) - 1)]


def middle(values: Sequence[float]) -> float:
    return statistics.median(values)
