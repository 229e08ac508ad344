"""What the benchmark of the pipeline says of what it saw; bulk writes, for a moment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="component: pyspark (not installed)")

from bench.pipeline import looks, page, rows, stages, store, way
from bench.pipeline.__main__ import KINDS, PAGE, measure
from bench.pipeline.line import STAGES, Broken, tree_cpu_s
from bench.pipeline.looks import Look
from bench.pipeline.scene import Scene
from bench.rounds import Sample, Settings
from penstock.client import connect
from tests.local_server import local_server


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
                processed=done,
                batch=(int(at_s // 3), 2900),
                captured=done * 3,
                cpu_s={"spark": at_s * 1.5, "cdc": 7 + at_s * 0.25},
            )
        )
    return found


def test_a_rate_is_from_step_to_step() -> None:
    found = looks.rates(steps(tweets_per_s=2000))

    assert found == pytest.approx({"firehose": 2000, "spark": 2000})


def test_what_went_up_once_counts_over_the_whole_time() -> None:
    assert looks.rate([(0.0, 5), (1.0, 5), (2.0, 15), (10.0, 15)]) == 1.0


def test_batches_are_counted_by_their_ends() -> None:
    seen = [Look(float(at), 99, at // 3) for at in range(10)]

    assert looks.batches(seen) == 3


def test_batches_that_ended_before_do_not_count() -> None:
    took = [
        (1, 9000),
        (1, 9000),
        *((2 + at, 1000 + at) for at in range(19)),
        (21, 5000),
    ]
    seen = [Look(float(at), 99, at, batch=one) for at, one in enumerate(took)]

    assert looks.batch_p95_s(seen) == 1.018
    assert looks.percentile([], 95) == 0.0


def test_lag_that_only_swings_does_not_grow() -> None:
    seen = steps(tweets_per_s=2000)

    assert abs(looks.growth(seen)) < 20
    assert stages.through(seen, offered=2000).is_bounded


def test_lag_that_grows_slowly_is_not_bounded() -> None:
    seen = [
        Look(
            at_s=look.at_s,
            firehose=look.firehose + number * 40,  # 160 a second too many
            processed=look.processed,
        )
        for number, look in enumerate(steps(tweets_per_s=2000))
    ]

    found = stages.through(seen, offered=2160)

    assert found.growth == pytest.approx(160, abs=10)
    assert found.lag < stages.HELD_TWEETS and not found.is_bounded


def test_cpu_is_that_of_the_time_that_was_looked_at() -> None:
    found = stages.through(steps(tweets_per_s=1000))

    assert found.cpu_s == pytest.approx({"spark": 59.75 * 1.5, "cdc": 59.75 / 4})


def test_a_tweet_is_on_its_way_until_a_look_says_that_it_is_done(
    tmp_path: Path,
) -> None:
    """Each of ten tweets is acknowledged by the look a second later."""
    keys = [str(number).encode() for number in range(10)]
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.publish("firehose", [b"{}"] * 10, keys=keys)
        client.publish("tweets", [b"{}"] * 11, keys=[*keys, b"a retweeted one"])
        came_s = time.monotonic()
        seen = [
            Look(came_s + at, 10 if at else 0, at, acknowledged=at) for at in range(11)
        ]

        # The last half, of which the slowest is seen at last.
        assert way.p95_s(client, seen) == pytest.approx(10, abs=1)
        assert way.p95_s(client, seen[:2]) == 0.0


def test_nothing_is_said_of_a_time_in_which_a_part_ended() -> None:
    seen = [Look(0.0, 9, 1), Look(1.0, 9, 2, restarts=1)]

    with pytest.raises(Broken, match="started again"):
        stages.through(seen)


@pytest.mark.parametrize(
    ("look", "held"),
    [
        (Look(0.0, 40_000, 10_001), False),
        (Look(0.0, 40_000, 10_000), True),
        (Look(0.0, 0, 0, uncaptured_bytes=stages.HELD_BYTES), True),
        (Look(0.0, 0, 0, unread=stages.HELD_CHANGES), True),
    ],
)
def test_source_is_held_while_anything_is_behind(look: Look, *, held: bool) -> None:
    assert stages.too_much(look) is held


def sample(rate: int) -> Sample:
    return Sample(events=rate * 10, bytes=0, seconds=10.0, cpu_s=1.0)


def test_the_pipeline_is_held_against_a_plain_process() -> None:
    through = stages.through(steps(tweets_per_s=6000), offered=6000)
    found = stages.Stages(through, through, through)

    good, bad, alone = (
        rows.of_stages(found, one)[0] for one in (sample(11_000), sample(13_000), None)
    )

    assert (good.ratio, good.met) == ("0.55x the plain process", True)
    assert bad.met is False
    assert (alone.ratio, alone.met) == ("", True)


def test_too_few_tweets_are_too_few_whatever_a_plain_process_does() -> None:
    through = stages.through(steps(tweets_per_s=5900), offered=5900)

    table = rows.of_stages(stages.Stages(through, through, through), sample(6000))

    assert table[0].met is False


def test_shares_of_the_stages_are_of_all_of_them() -> None:
    through = stages.through(steps(tweets_per_s=1000), offered=1000)

    table = rows.of_stages(stages.Stages(through, through, through), None)[-3:]

    assert [(row.contender, row.ratio) for row in table] == [
        ("all of them", ""),
        ("spark", "86% of all stages"),
        ("cdc", "14% of all stages"),
    ]
    assert table[1].cpu_s_per_million == pytest.approx(1500)
    assert table[0].met is False


@pytest.mark.parametrize(
    ("rate", "beside", "met"),
    [(10_000, 11_000, True), (9_900, 9_900, False), (11_000, 12_500, False)],
)
def test_the_query_is_held_against_a_plain_process(
    rate: int, beside: int, *, met: bool
) -> None:
    plain, spark = rows.of_jobs(sample(beside), sample(rate))

    assert (plain.met, spark.met) == (None, met)


@pytest.mark.parametrize(("loader", "met"), [(199.0, True), (201.0, False)])
def test_loader_may_be_twice_as_quick(loader: float, *, met: bool) -> None:
    found = store.Measured("postgresql", 10, 900, loader, 100.0, 50.0, 300.0)

    table = rows.of_store([found])

    assert [row.met for row in table] == [None, met, None, None]


@pytest.mark.parametrize(("newer", "met"), [(25.1, True), (24.9, False)])
def test_another_store_may_take_twice_as_long_over_older_documents(
    newer: float, *, met: bool
) -> None:
    first = store.Measured("postgresql", 10, 900, 100.0, 100.0, 50.0, 300.0)
    second = store.Measured("mongodb", 10, 900, 100.0, 100.0, newer, 300.0)

    table = rows.of_store([first, second])

    assert [row.met for row in table[4:]] == [None, True, met, None]
    assert table[2].met is None


@pytest.mark.parametrize(("rate", "met"), [(2600, True), (2400, False)])
def test_tweets_into_another_store_may_take_twice_as_long(
    rate: int, *, met: bool
) -> None:
    own = stages.through(steps(tweets_per_s=5000), offered=5000)
    other = stages.through(steps(tweets_per_s=rate), offered=rate)

    alone, beside = rows.of_mongodb(other, None), rows.of_mongodb(other, own)

    assert (alone.ratio, alone.met) == ("", True)
    assert beside.ratio == f"PostgreSQL {5000 / rate:.2f}x of it"
    assert beside.met is met


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
    assert KINDS == ("stages", "mongodb", "jobs", "cluster", "store")
    assert len(STAGES) == 7
