"""What was measured -> rows of the table, with what was promised."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from bench.pipeline.stages import HELD_TWEETS, SLACK, Stages, Through
from bench.pipeline.store import Measured
from bench.rounds import Row, Sample

THROUGH = "tweets through all stages"
CPU = "CPU of the stages"
JOBS = "the jobs alone, into the store"
STORE = "bulk writes"
# Of what the jobs alone do.
PART_OF_CEILING = 0.5
# The driver's bulk loader may be so many times as quick.
LOADER = 2.0


def of_stages(found: Stages, ceiling: Sample | None) -> list[Row]:
    """``ceiling``: the jobs from Parquet, if they were measured in the same run."""
    most, steady = found.most, found.steady
    part = None if ceiling is None else most.tweets_per_s / ceiling.events_per_s
    whole_cpu_s = sum(most.cpu_s.values())
    return [
        Row(
            benchmark=THROUGH,
            case="",
            contender="as many as go through",
            rate=_rate(most),
            cpu_s_per_million=_per_million(whole_cpu_s, most),
            ratio="" if part is None else f"{part:.0%} of the jobs from Parquet files",
            target=f"at least {PART_OF_CEILING:.0%}",
            met=None if part is None else part >= PART_OF_CEILING,
        ),
        Row(
            benchmark=THROUGH,
            case="",
            contender=f"steadily {steady.offered or 0:.0f} tweets/s",
            rate=_rate(steady),
            cpu_s_per_million=_per_million(sum(steady.cpu_s.values()), steady),
            ratio=f"the lag changes by {steady.growth:+.0f} tweets/s",
            target=f"lag bounded: under {HELD_TWEETS * SLACK:.0f} tweets, not growing",
            met=steady.is_bounded,
        ),
        *(_stage(name, seconds, most) for name, seconds in most.cpu_s.items()),
    ]


def _stage(name: str, cpu_s: float, through: Through) -> Row:
    share = cpu_s / (sum(through.cpu_s.values()) or 1.0)
    return Row(
        benchmark=CPU,
        case="",
        contender=name,
        rate=f"{cpu_s / through.seconds:.2f} cores",
        cpu_s_per_million=_per_million(cpu_s, through),
        ratio=f"{share:.0%} of all stages",
    )


def _rate(through: Through) -> str:
    lag_s = through.lag / (through.tweets_per_s or 1.0)
    return (
        f"{through.tweets_per_s:.0f} tweets/s, {through.changes_per_s:.0f} changes/s,"
        f" lag at most {lag_s:.1f} s"
    )


def _per_million(cpu_s: float, through: Through) -> float:
    return cpu_s * 1e6 / max(through.tweets, 1)


def of_jobs(samples: Mapping[str, Sample]) -> list[Row]:
    """The first is the ceiling."""
    first = next(iter(samples))
    return [
        Row(
            benchmark=JOBS,
            case="",
            contender=name,
            rate=f"{sample.events_per_s:.0f} tweets/s",
            cpu_s_per_million=sample.cpu_s_per_million,
            ratio=""
            if name == first
            else f"{sample.events_per_s / samples[first].events_per_s:.0%} of {first}",
        )
        for name, sample in samples.items()
    ]


def of_store(found: Sequence[Measured]) -> list[Row]:
    return [row for one in found for row in _store(one)]


def _store(found: Measured) -> list[Row]:
    case = f"{found.document_bytes} B"
    target = f"the loader at most {LOADER:g}x"
    ratio = f"the loader {found.ratio:.2f}x of it"
    loader, new, newer, again = (
        Row(
            benchmark=f"{STORE}, {found.system}",
            case=case,
            contender=contender,
            rate=f"{rate:.0f} documents/s",
        )
        for contender, rate in (
            ("the driver's bulk loader", found.loader),
            ("upserts of new documents", found.new),
            ("upserts over older ones", found.newer),
            ("upserts of what is there", found.again),
        )
    )
    judged = dataclasses.replace(
        new, ratio=ratio, target=target, met=found.ratio <= LOADER
    )
    return [loader, judged, newer, again]
