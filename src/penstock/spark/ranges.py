"""Which offsets each task reads: a topic is split as often as is worth a task."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql.datasource import InputPartition

from penstock.table.extent import Extent

# A task costs some 10 ms however little it reads: below this, one does it all.
MIN_TASK_BYTES = 8 << 20
# What is assumed of an event where nothing is known: it is never free.
MIN_EVENT_BYTES = 16.0


@dataclass(frozen=True)
class TaskRange(InputPartition):
    """Offsets of a topic that one task reads, from ``start`` to in front of ``end``."""

    topic: str
    start: int
    end: int
    number: int = 0
    """Of the topic, if that is known."""


def split(
    spans: Mapping[str, tuple[int, int]],
    extents: Mapping[str, Extent],
    *,
    at_least: int | None = None,
    most_records: int | None = None,
    tasks: int | None = None,
) -> list[TaskRange]:
    """Ranges that together are the spans, topics by name, each in order.

    ``at_least`` that many, if there are as many offsets; without it as many as this
    machine has processors for (``tasks``), where there is enough to read.
    """
    weights = {
        topic: (end - start) * _weight(extents.get(topic))
        for topic, (start, end) in spans.items()
        if start < end
    }
    total = sum(weights.values())
    if not weights:
        return []
    wanted = at_least or min(
        tasks or os.cpu_count() or 1, 1 + int(total / MIN_TASK_BYTES)
    )
    ranges: list[TaskRange] = []
    for topic in sorted(weights):
        start, end = spans[topic]
        count = -int(-wanted * weights[topic] // total)  # rounded up
        if most_records is not None:
            count = max(count, -(-(end - start) // most_records))
        pieces = _pieces(topic, start, end, min(max(count, 1), end - start))
        number = extents[topic].number if topic in extents else 0
        ranges += [replace(piece, number=number) for piece in pieces]
    return ranges


def share(lags: Mapping[str, int], limit: int) -> dict[str, int]:
    """How many offsets of each topic to take, ``limit`` in all, by how many wait.

    One at least of each that has any, if there are enough: no topic waits for ever.
    """
    total = sum(lags.values())
    if total <= limit:
        return dict(lags)
    ones = {topic: min(lag, 1) for topic, lag in lags.items()}
    rest = limit - sum(ones.values())
    if rest < 0:
        return _by_lag(lags, total, limit)
    others = {topic: lag - ones[topic] for topic, lag in lags.items()}
    more = _by_lag(others, sum(others.values()), rest)
    return {topic: ones[topic] + more[topic] for topic in lags}


def _by_lag(lags: Mapping[str, int], total: int, limit: int) -> dict[str, int]:
    """Less than all of them, in proportion."""
    taken = {topic: limit * lag // total for topic, lag in lags.items()}
    # What rounding left goes to those who lost most by it; names decide a draw.
    left = limit - sum(taken.values())
    losers = sorted(lags, key=lambda topic: (-(limit * lags[topic] % total), topic))
    for topic in losers[:left]:
        taken[topic] += 1
    return taken


def _weight(extent: Extent | None) -> float:
    return max(extent.bytes_per_event if extent else 0.0, MIN_EVENT_BYTES)


def _pieces(topic: str, start: int, end: int, count: int) -> list[TaskRange]:
    cuts = [start + (end - start) * piece // count for piece in range(count + 1)]
    return [TaskRange(topic, a, b) for a, b in zip(cuts, cuts[1:], strict=False)]
