"""What the benchmark of the pipeline says of what it saw; bulk writes, for a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="component: pyspark (not installed)")

from bench.pipeline import jobs, looks, page, rows, stages, store
from bench.pipeline.__main__ import KINDS, PAGE, measure
from bench.pipeline.line import STAGES, Broken, tree_cpu_s
from bench.pipeline.looks import Look
from bench.pipeline.scene import Scene
from bench.rounds import Sample, Settings


def steps(*, tweets_per_s: int, seconds: int = 60, behind: int = 0) -> list[Look]:
    """Four looks a second at queries that go on every 3 seconds."""
    found = []
    for number in range(seconds * 4):
        at_s = number / 4
        done = int(at_s // 3) * 3 * tweets_per_s
        found.append(
            Look(
                at_s=100 + at_s,
                firehose=int(tweets_per_s * at_s) + behind,
                places={"tweets": done, "running": done + 10},
                captured=done * 3,
                cpu_s={"spark": at_s * 1.5, "cdc": 7 + at_s * 0.25},
            )
        )
    return found


def test_a_rate_is_from_step_to_step() -> None:
    found = looks.rates(steps(tweets_per_s=2000))

    assert found == pytest.approx({"firehose": 2000, "tweets": 2000, "running": 2000})


def test_what_went_up_once_counts_over_the_whole_time() -> None:
    assert looks.rate([(0.0, 5), (1.0, 5), (2.0, 15), (10.0, 15)]) == 1.0


def test_batches_are_those_of_the_slowest_query() -> None:
    seen = [Look(float(at), 99, {"a": at, "b": at // 3}) for at in range(10)]

    assert looks.batches(seen) == 3


def test_lag_that_only_swings_does_not_grow() -> None:
    seen = steps(tweets_per_s=2000)

    assert abs(looks.growth(seen)) < 20
    assert stages.through(seen, offered=2000).is_bounded


def test_lag_that_grows_slowly_is_not_bounded() -> None:
    seen = [
        Look(
            at_s=look.at_s,
            firehose=look.firehose + number * 40,  # 160 a second too many
            places=look.places,
        )
        for number, look in enumerate(steps(tweets_per_s=2000))
    ]

    found = stages.through(seen, offered=2160)

    assert found.growth == pytest.approx(160, abs=10)
    assert found.lag < stages.HELD_TWEETS and not found.is_bounded


def test_cpu_is_that_of_the_time_that_was_looked_at() -> None:
    found = stages.through(steps(tweets_per_s=1000))

    assert found.cpu_s == pytest.approx({"spark": 59.75 * 1.5, "cdc": 59.75 / 4})


def test_nothing_is_said_of_a_time_in_which_a_part_ended() -> None:
    seen = [Look(0.0, 9, {"tweets": 1}), Look(1.0, 9, {"tweets": 2}, restarts=1)]

    with pytest.raises(Broken, match="started again"):
        stages.through(seen)


@pytest.mark.parametrize(
    ("look", "held"),
    [
        (Look(0.0, 30_000, {"tweets": 29_000, "running": 10_001}), False),
        (Look(0.0, 30_000, {"tweets": 29_000, "running": 10_000}), True),
        (Look(0.0, 0, {"tweets": 0}, uncaptured_bytes=stages.HELD_BYTES), True),
        (Look(0.0, 0, {"tweets": 0}, unread=stages.HELD_CHANGES), True),
    ],
)
def test_source_is_held_while_anything_is_behind(look: Look, *, held: bool) -> None:
    assert stages.too_much(look) is held


def test_the_pipeline_is_held_against_its_jobs_alone() -> None:
    through = stages.through(steps(tweets_per_s=1000), offered=1000)
    found = stages.Stages(through, through)
    low, high = (
        Sample(events=rate * 10, bytes=0, seconds=10.0, cpu_s=1.0)
        for rate in (1900, 2100)
    )

    good, bad, alone = (rows.of_stages(found, one)[0] for one in (low, high, None))

    assert (good.ratio, good.met) == ("53% of the jobs from Parquet files", True)
    assert bad.met is False
    assert (alone.ratio, alone.met) == ("", None)


def test_shares_of_the_stages_are_of_all_of_them() -> None:
    through = stages.through(steps(tweets_per_s=1000), offered=1000)

    table = rows.of_stages(stages.Stages(through, through), None)[2:]

    assert [(row.contender, row.ratio) for row in table] == [
        ("spark", "86% of all stages"),
        ("cdc", "14% of all stages"),
    ]
    assert table[0].cpu_s_per_million == pytest.approx(1500)


def test_files_are_the_ceiling_for_the_topic() -> None:
    table = rows.of_jobs(
        {
            jobs.PARQUET: Sample(events=100, bytes=0, seconds=1.0, cpu_s=0.1),
            jobs.TOPIC: Sample(events=100, bytes=0, seconds=2.0, cpu_s=0.1),
        }
    )

    assert [row.ratio for row in table] == ["", "50% of from Parquet files"]


@pytest.mark.parametrize(("loader", "met"), [(199.0, True), (201.0, False)])
def test_loader_may_be_twice_as_quick(loader: float, *, met: bool) -> None:
    found = store.Measured("postgresql", 10, 900, loader, 100.0, 50.0, 300.0)

    table = rows.of_store([found])

    assert [row.met for row in table] == [None, met, None, None]


def test_time_of_children_that_have_ended_counts() -> None:
    before = tree_cpu_s(os.getpid())

    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)

    assert tree_cpu_s(os.getpid()) - before >= 0.1


@pytest.mark.slow
def test_bulk_writes_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "QUICK_DOCUMENTS", 500)
    monkeypatch.setattr(store, "ROUNDS", 1)
    notes: list[str] = []

    table = measure(Scene(Settings(directory=tmp_path, quick=True)), ["store"], notes)

    systems = {row.benchmark for row in table}
    assert "bulk writes, postgresql" in systems
    assert "bulk writes, mongodb" in systems or "MongoDB is missing" in notes[0]
    assert all(not row.rate.startswith("0 ") for row in table)


def test_the_page_has_one_place_for_the_table() -> None:
    text = PAGE.read_text()

    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert KINDS == ("stages", "jobs", "store")
    assert len(STAGES) == 7
