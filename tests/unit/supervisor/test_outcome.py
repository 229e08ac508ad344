from __future__ import annotations

import pytest

from penstock.supervisor.comparisons import Comparison
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.outcome import Outcome, Times
from penstock.supervisor.process import PartState

RIGHT = [Comparison("tweets", 5, 5)]
TIMES = Times(3.0, 60.0, 4.5)


def row(name: str, events: int, new: int | None = None) -> StageCounts:
    new = events if new is None else new
    return StageCounts(name=name, state=PartState.ENDED, events=events, new=new, lag=0)


def test_times_add_up() -> None:
    assert TIMES.total_s == 67.5


@pytest.mark.parametrize(
    ("found", "unfinished", "good"),
    [
        (RIGHT, [], True),
        ([*RIGHT, Comparison("users", 5, 4)], [], False),
        (RIGHT, ["spark"], False),
        ([], [], False),
    ],
)
def test_it_is_good_if_nothing_is_missing(
    found: list[Comparison], unfinished: list[str], *, good: bool
) -> None:
    assert Outcome([row("spark", 1)], found, TIMES, unfinished).good is good


def test_what_earlier_runs_did_is_not_what_this_one_did() -> None:
    rows = [row("ingest", 100, 20), row("cdc", 80, 0)]

    assert Outcome(rows, RIGHT, TIMES, []).idle == ["cdc"]


def test_if_the_streams_are_over_an_earlier_run_may_have_done_it_all() -> None:
    rows = [row("source", 0), row("ingest", 100, 0), row("cdc", 0)]

    assert Outcome(rows, RIGHT, TIMES, [], over=True).idle == ["cdc"]
    assert Outcome(rows, RIGHT, TIMES, []).idle == ["source", "ingest", "cdc"]
