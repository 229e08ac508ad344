"""Percentiles over tweets, and windows that are told once."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import Any

import msgspec
import pytest

from penstock.pipeline.notes import Took
from penstock.pipeline.statistics import Windows, closed, percentile

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ([7], (7, 7, 7)),
        ([1, 1], (1, 1, 1)),
        ([10, 20], (17.5, 18.5, 19.5)),
        ([40, 10, 30, 20], (32.5, 35.5, 38.5)),
        ([100, 200, 301], (250.5, 270.7, 290.9)),
        ([1, 2, 4, 8, 16, 33], (14, 20.25, 28.75)),
        (list(range(101)), (75, 85, 95)),
    ],
)
def test_percentiles_are_interpolated_and_rounded_up(
    times: list[int], told: tuple[float, ...]
) -> None:
    counts = {ms: times.count(ms) for ms in times}

    found = tuple(percentile(counts, one) for one in (75, 85, 95))

    assert found == told == tuple(defined(times, one) for one in (75, 85, 95))


def test_a_window_is_told_when_it_is_over() -> None:
    windows = Windows()
    windows.add(5_000, Took({12: 40}, {3: 40}, {2: 40}))
    windows.add(10_000, Took({9: 1}, {7: 1}, {1: 1}))
    windows.panic(5_000, 2)
    windows.panic(9_999, 3)

    told = values(closed(windows, windows.reached_ms))

    assert [(one["window_start_ms"], one["window_end_ms"]) for one in told] == [
        *[(5_000, 10_000)] * 3
    ]
    assert [one["kind"] for one in told] == ["processing", "tweets", "users"]
    assert [(one["p75"], one["p85"], one["p95"]) for one in told] == [
        *((12, 12, 12), (3, 3, 3), (2, 2, 2))
    ]
    assert told[0]["crashes"] == 5
    assert [one["processed"] for one in told[1:]] == [40, 40]
    logger = "LoggerWorker execution time] Percentile stats"
    worker, bulk = (
        "[StatisticWorker spark - ",
        "insert stats] Execution time percentile",
    )
    assert [one["text"] for one in told] == [
        f"{worker}{logger} {_all(12)} [5 CRASHES/5sec]",
        f"{worker}Bulk `tweets` {bulk} {_all(3)} [processed=40]",
        f"{worker}Bulk `users` {bulk} {_all(2)} [processed=40]",
    ]
    assert list(windows.open) == [10_000]
    assert closed(windows, windows.reached_ms) == {}


def test_windows_of_several_tasks_are_one() -> None:
    windows = Windows()
    for times in ({10: 1}, {10: 2, 20: 1}):
        windows.add(5_000, Took(times, times, times))

    (told, *_) = values(closed(windows, 10_000))

    assert told["p75"] == defined([10, 10, 10, 20], 75)


def test_what_comes_late_counts_in_the_window_that_is_open() -> None:
    windows = Windows()
    took = Took({1: 1}, {1: 1}, {1: 1})
    windows.add(10_000, took)
    assert len(closed(windows, 15_000)["tweets_stats"]) == 1

    windows.add(5_000, took)  # a clock was set back
    windows.add(15_000, took)

    (told,) = closed(windows, 20_000)["tweets_stats"]
    assert msgspec.json.decode(told)["processed"] == 2


def test_panics_of_windows_without_tweets_count_in_the_next_one_that_has_some() -> None:
    windows = Windows()
    took = Took({1: 1}, {1: 1}, {1: 1})
    windows.add(0, took)
    windows.add(20_000, took)
    assert windows.end_ms == 25_000
    for at_ms, count in ((7_000, 2), (21_000, 1)):
        windows.panic(at_ms, count)

    told = crashes(windows, 30_000)
    windows.add(10_000, took)  # late: its window and those behind it are told
    windows.add(40_000, took)
    windows.panic(3_000, 5)  # a clock was set back
    windows.panic(31_000, 4)
    later = crashes(windows, 50_000)

    assert told == {0: 0, 20_000: 3}
    assert later == {25_000: 5, 40_000: 4}
    assert windows.end_ms == 0


def crashes(windows: Windows, to_ms: int) -> dict[int, int]:
    told = map(msgspec.json.decode, closed(windows, to_ms)["logger_stats"])
    return {one["window_start_ms"]: one["crashes"] for one in told}


def test_windows_are_kept_as_json() -> None:
    windows = Windows()
    windows.add(5_000, Took({12: 40}, {3: 40}, {2: 40}))
    windows.panic(5_000, 2)

    kept = msgspec.json.decode(msgspec.json.encode(windows), type=Windows)

    assert kept == windows
    assert closed(kept, 10_000) == closed(windows, 10_000)


def values(told: dict[str, list[bytes]]) -> list[Json]:
    return [msgspec.json.decode(one) for payloads in told.values() for one in payloads]


def defined(times: list[int], n: int) -> float:
    """The percentile as it is defined: linear at n/100 of len - 1, rounded up."""
    exact = sorted(Decimal(one) for one in times)
    rank = Decimal(n) / 100 * (len(exact) - 1)
    low = int(rank)
    high = min(low + 1, len(exact) - 1)
    value = exact[low] + (exact[high] - exact[low]) * (rank - low)
    return float(value.quantize(Decimal("0.01"), ROUND_CEILING))


def _all(ms: int) -> str:
    return f"75%={ms}.0 | 85%={ms}.0 | 95%={ms}.0"
