"""What was measured -> rows of the table, with what was promised."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from bench.pipeline.stages import HELD_TWEETS, SLACK, Stages, Through
from bench.pipeline.store import Measured
from bench.rounds import Row, Sample

THROUGH = "tweets through all stages"
CPU = "CPU of the stages"
BATCHES = "batches of Spark"
JOBS = "the query alone, from a full topic"
STORE = "bulk writes"
# Of what one plain process of Python does.
PART_OF_PLAIN, JOBS_OF_PLAIN = 0.5, 0.9
# Tweets a second.
MOST, JOBS_MOST = 6_000, 10_000
# CPU seconds of all stages, for a million tweets.
CPU_MOST = 200.0
# Nearly all batches, in seconds: when as many go through as can, and with half of it.
BATCH_S, HALF_BATCH_S = 3.0, 1.2
ON_ITS_WAY_S = 3.0
# The driver's bulk loader may be so many times as quick.
LOADER = 2.0
# One store may be so many times as quick as another, at the same.
STORES = 2.0


def of_stages(found: Stages, plain: Sample | None) -> list[Row]:
    """``plain``: the process without Spark, if it was measured in the same run."""
    most, steady, half = found.most, found.steady, found.half
    return [
        _most(most, plain),
        _through(
            f"steadily {steady.offered or 0:.0f} tweets/s",
            steady,
            ratio=f"the lag changes by {steady.growth:+.0f} tweets/s",
            target=f"lag bounded: under {HELD_TWEETS * SLACK:.0f} tweets, not growing",
            met=steady.is_bounded,
        ),
        _half(half),
        _batches("as many as go through", most, BATCH_S),
        _batches("half of it", half, HALF_BATCH_S),
        _cpu(most),
        *(_stage(name, seconds, most) for name, seconds in most.cpu_s.items()),
    ]


def of_mongodb(found: Through, own: Through | None) -> Row:
    """``own``: into the PostgreSQL that comes along, if that was measured as well."""
    ratio = None if own is None else own.tweets_per_s / found.tweets_per_s
    return _through(
        "as many as go through into a MongoDB",
        found,
        ratio="" if ratio is None else f"PostgreSQL {ratio:.2f}x of it",
        target=f"PostgreSQL at most {STORES:g}x",
        met=ratio is None or ratio <= STORES,
    )


def _through(
    contender: str, through: Through, *, ratio: str, target: str, met: bool
) -> Row:
    return Row(
        benchmark=THROUGH,
        case="",
        contender=contender,
        rate=_rate(through),
        cpu_s_per_million=_per_million(sum(through.cpu_s.values()), through),
        ratio=ratio,
        target=target,
        met=met,
    )


def _most(most: Through, plain: Sample | None) -> Row:
    part = None if plain is None else most.tweets_per_s / plain.events_per_s
    enough = most.tweets_per_s >= MOST
    return _through(
        "as many as go through",
        most,
        ratio="" if part is None else f"{part:.2f}x the plain process",
        target=f"at least {MOST} tweets/s, {PART_OF_PLAIN}x the plain process",
        met=enough and (part is None or part >= PART_OF_PLAIN),
    )


def _half(half: Through) -> Row:
    way_s = half.on_its_way_p95_s or 0.0
    return _through(
        f"half of it: {half.offered or 0:.0f} tweets/s",
        half,
        ratio=f"from the firehose to an acknowledged change: p95 {way_s:.1f} s",
        target=f"under {ON_ITS_WAY_S:g} s",
        met=way_s < ON_ITS_WAY_S,
    )


def _batches(case: str, through: Through, most_s: float) -> Row:
    return Row(
        benchmark=BATCHES,
        case="",
        contender=case,
        rate=f"p95 {through.batch_p95_s:.1f} s",
        target=f"at most {most_s:g} s",
        met=through.batch_p95_s <= most_s,
    )


def _cpu(most: Through) -> Row:
    cpu_s = sum(most.cpu_s.values())
    per_million = _per_million(cpu_s, most)
    return Row(
        benchmark=CPU,
        case="",
        contender="all of them",
        rate=f"{cpu_s / most.seconds:.2f} cores",
        cpu_s_per_million=per_million,
        target=f"at most {CPU_MOST:g} s for a million tweets",
        met=per_million <= CPU_MOST,
    )


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


def of_jobs(plain: Sample, spark: Sample) -> list[Row]:
    """The process without Spark, and the query on Spark."""
    part = spark.events_per_s / plain.events_per_s
    return [
        _job("one plain process of Python", plain),
        dataclasses.replace(
            _job("Spark", spark),
            ratio=f"{part:.2f}x the plain process",
            target=f"at least {JOBS_MOST} tweets/s, {JOBS_OF_PLAIN}x the plain process",
            met=spark.events_per_s >= JOBS_MOST and part >= JOBS_OF_PLAIN,
        ),
    ]


def _job(contender: str, sample: Sample) -> Row:
    return Row(
        benchmark=JOBS,
        case="",
        contender=contender,
        rate=f"{sample.events_per_s:.0f} tweets/s",
        cpu_s_per_million=sample.cpu_s_per_million,
    )


def of_store(found: Sequence[Measured]) -> list[Row]:
    """The first is what others are compared with."""
    return [row for one in found for row in _store(one, found[0])]


def _store(found: Measured, first: Measured) -> list[Row]:
    case = f"{found.document_bytes} B"
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
    new = dataclasses.replace(
        new,
        ratio=f"the loader {found.ratio:.2f}x of it",
        target=f"the loader at most {LOADER:g}x",
        met=found.ratio <= LOADER,
    )
    return [loader, new, _beside(newer, first, first.newer / found.newer), again]


def _beside(row: Row, first: Measured, ratio: float) -> Row:
    """Judged by the store that it is compared with, unless it is that one."""
    if row.benchmark == f"{STORE}, {first.system}":
        return row
    return dataclasses.replace(
        row,
        ratio=f"{first.system} {ratio:.2f}x of it",
        target=f"{first.system} at most {STORES:g}x",
        met=ratio <= STORES,
    )
