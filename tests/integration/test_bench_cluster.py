"""What the benchmark of the cluster says of what it saw; the cluster is not started."""

from __future__ import annotations

import pytest

from bench.pipeline.cluster import BENCHMARK, limit, rows
from bench.rounds import Sample


@pytest.mark.parametrize(
    ("executors", "driver", "count", "said"),
    [
        (1.2, 0.7, 2, "all 2 cores of the machine"),
        (0.95, 0.2, 1, "the executors"),
        (0.95, 0.2, 2, "none of them: it is waiting for one another"),
    ],
)
def test_what_is_busy_is_the_limit(
    executors: float, driver: float, count: int, said: str
) -> None:
    busy = {"executors": executors, "driver": driver}

    text = limit(busy, count, cores=2)

    assert text.startswith(f"limited by {said} (")
    assert f"executors {executors:.2f}, driver {driver:.2f}" in text


def test_two_executors_are_held_against_one() -> None:
    one, two = rows({"one executor": sample(1000.0), "two executors": sample(1500.0)})

    assert {one.benchmark, two.benchmark} == {BENCHMARK}
    assert one.rate == "1000 tweets/s" and one.ratio.startswith("limited by")
    assert two.ratio.startswith("1.50x of one executor; limited by")
    assert two.cpu_s_per_million == pytest.approx(200.0)


def test_nothing_is_said_of_what_was_not_measured() -> None:
    assert rows({}) == []


def sample(tweets_per_s: float) -> Sample:
    events = int(tweets_per_s * 60)
    return Sample(
        events=events,
        bytes=0,
        seconds=60.0,
        cpu_s=events * 200e-6,
        facts={"executors": 0.5, "driver": 0.1},
    )
