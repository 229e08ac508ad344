from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery.letters import Closings, LetterVerdict

NUMBERS = st.integers(0, 20)
VERDICTS: st.SearchStrategy[LetterVerdict] = st.sampled_from(["republished", "dropped"])
STEPS = st.lists(st.tuples(st.booleans(), NUMBERS, VERDICTS))


@given(STEPS)
def test_runs_say_what_single_numbers_would(
    steps: list[tuple[bool, int, LetterVerdict]],
) -> None:
    closings = Closings()
    model: dict[int, LetterVerdict] = {}
    for adds, number, verdict in steps:
        if adds:
            closings.add(number, verdict)
            model.setdefault(number, verdict)
        else:
            closings.discard(number)
            model.pop(number, None)

    assert {n: closings.get(n) for n in range(22)} == {
        n: model.get(n) for n in range(22)
    }
    runs = closings.runs()
    assert all(first < end for first, end, _ in runs)
    for (_, end, verdict), (first, _, other) in zip(runs, runs[1:], strict=False):
        assert end < first or (end == first and verdict != other), "kept together"


@given(STEPS, st.integers(0, 5))
def test_a_floor_rises_over_what_is_closed_without_a_gap(
    steps: list[tuple[bool, int, LetterVerdict]], floor: int
) -> None:
    closings = Closings()
    for _, number, verdict in steps:
        if number >= floor:
            closings.add(number, verdict)
    model = {number for _, number, _ in steps if number >= floor}
    before = closings.runs()
    expected = floor
    while expected in model:
        expected += 1

    assert closings.raised(floor) == expected
    assert closings.raised(expected) == expected
    assert closings.runs() == before


def test_in_front_of_the_floor_the_newest_runs_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.delivery.letters.MAX_RUNS", 2)
    verdicts: list[LetterVerdict] = ["dropped", "republished"]
    closings = Closings((n, n + 1, verdicts[n % 2]) for n in (0, 1, 2, 3, 5, 6))

    assert closings.raised(0) == 4

    assert [first for first, _, _ in closings.runs()] == [2, 3, 5, 6]
    assert closings.raised(4) == 4
    assert len(closings.runs()) == 4


def test_neighbours_are_one_run() -> None:
    closings = Closings()

    for number in range(1, 1_000):
        closings.add(number, "republished")

    assert closings.runs() == [(1, 1_000, "republished")]


@pytest.mark.parametrize("runs", [[], [(0, 3, "dropped"), (7, 8, "republished")]])
def test_runs_are_made_from_runs(runs: list[tuple[int, int, LetterVerdict]]) -> None:
    assert Closings(runs).runs() == runs


@pytest.mark.parametrize(
    ("first", "end", "count"),
    [(0, 100, 5), (0, 2, 0), (2, 3, 1), (3, 8, 4), (9, 100, 0), (7, 7, 0), (0, 0, 0)],
)
def test_numbers_that_are_closed_are_counted(first: int, end: int, count: int) -> None:
    closings = Closings([(2, 5, "dropped"), (6, 7, "republished"), (7, 8, "dropped")])

    assert closings.count(first, end) == count
