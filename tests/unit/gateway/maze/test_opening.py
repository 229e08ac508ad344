from __future__ import annotations

import pytest

from penstock.gateway.maze.hub import FirstEvents, Verdict


def take(
    opening: FirstEvents[str], *numbers: int, now_s: float = 0.0
) -> Verdict | None:
    return opening.take(list(numbers), [f"e{n}" for n in numbers], now_s)


@pytest.mark.parametrize("numbers", [(1,), (3, 2, 1), (5, 4, 3, 1)])
def test_number_one_within_the_window_starts_afresh(numbers: tuple[int, ...]) -> None:
    assert take(FirstEvents(4, 5.0), *numbers) is Verdict.AFRESH


def test_number_one_starts_afresh_wherever_receives_are_cut():
    opening: FirstEvents[str] = FirstEvents(4, 5.0)

    assert take(opening, 3, 2) is None
    assert take(opening, 4, 1, 5) is Verdict.AFRESH
    assert opening.numbers == [3, 2, 4, 1, 5]
    assert opening.items == ["e3", "e2", "e4", "e1", "e5"]


def test_a_full_window_without_it_goes_on():
    opening: FirstEvents[str] = FirstEvents(4, 5.0)

    assert take(opening, 3, 2, 4) is None
    assert take(opening, 5) is Verdict.GOES_ON


def test_number_one_behind_the_window_is_no_restart():
    assert take(FirstEvents(4, 5.0), 5, 4, 3, 2, 1) is Verdict.GOES_ON


def test_a_source_that_had_its_time_goes_on():
    opening: FirstEvents[str] = FirstEvents(4, 5.0)
    take(opening, 7, now_s=100.0)

    assert not opening.overdue(104.9)
    assert opening.overdue(105.0)
    assert take(opening, 1, now_s=105.0) is Verdict.GOES_ON


def test_time_counts_from_the_first_event():
    opening: FirstEvents[str] = FirstEvents(4, 5.0)

    assert not opening.overdue(1e9)
    assert take(opening, now_s=1e9) is None
    assert take(opening, 2, now_s=2e9) is None
    assert take(opening, 1, now_s=2e9 + 1) is Verdict.AFRESH
