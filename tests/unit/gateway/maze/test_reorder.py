from __future__ import annotations

import pytest

from penstock.gateway.maze.reorder import Reorder, Reordered


def take(reorder: Reorder[str], *numbers: int, now_s: float = 0.0) -> Reordered[str]:
    return reorder.take(list(numbers), [f"e{n}" for n in numbers], now_s)


def events(*numbers: int) -> list[str]:
    return [f"e{n}" for n in numbers]


def test_events_in_order_leave_at_once():
    reorder: Reorder[str] = Reorder(10, 5.0)

    assert take(reorder, 1, 2, 3).ready == events(1, 2, 3)
    assert reorder.held == 0


def test_shuffled_events_leave_in_order():
    reorder: Reorder[str] = Reorder(10, 5.0)

    assert take(reorder, 3, 1, 4).ready == events(1)
    assert take(reorder, 5, 2).ready == events(2, 3, 4, 5)
    assert reorder.expected == 6


@pytest.mark.parametrize(
    ("numbers", "late"),
    [
        ((1, 1), (1,)),
        ((1, 2, 1, 3), (1,)),
        ((0, 1), (0,)),
        ((3, 3), (3,)),
    ],
)
def test_old_and_double_numbers_are_late(
    numbers: tuple[int, ...], late: tuple[int, ...]
) -> None:
    assert take(Reorder(10, 5.0), *numbers).late == events(*late)


def test_a_number_that_is_held_already_is_late_and_the_first_one_counts():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 2)

    taken = reorder.take([2, 1], ["again", "e1"], 0.0)

    assert taken.late == ["again"]
    assert taken.ready == events(1, 2)


def test_a_receive_of_late_events_only_changes_nothing():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 1, 2)

    assert take(reorder, 1, 2) == Reordered(late=events(1, 2))
    assert reorder.expected == 3


def test_a_gap_is_skipped_when_more_wait_than_may():
    reorder: Reorder[str] = Reorder(2, 5.0)

    assert take(reorder, 3, 5) == Reordered()
    assert take(reorder, 6) == Reordered(ready=events(3), gaps=[(1, 2)])
    assert take(reorder, 4).ready == events(4, 5, 6)


def test_a_lower_event_that_comes_when_it_is_full_goes_first():
    reorder: Reorder[str] = Reorder(2, 5.0)
    take(reorder, 5, 7)

    assert take(reorder, 3) == Reordered(ready=events(3), gaps=[(1, 2)])
    assert take(reorder, 2, 4).ready == events(4, 5)


def test_one_receive_may_bring_more_than_may_wait():
    reorder: Reorder[str] = Reorder(2, 5.0)

    assert take(reorder, 3, 2, 1, 6, 5, 4).ready == events(1, 2, 3, 4, 5, 6)


def test_cuts_do_not_matter_to_what_is_skipped():
    numbers = [4, 2, 8, 6, 1, 10, 12, 3, 7, 14, 16, 5, 15]
    whole: Reorder[str] = Reorder(3, 5.0)
    single: Reorder[str] = Reorder(3, 5.0)

    at_once = take(whole, *numbers)
    one_by_one = [take(single, number) for number in numbers]

    assert at_once.ready == [e for taken in one_by_one for e in taken.ready]
    assert at_once.late == [e for taken in one_by_one for e in taken.late]
    assert at_once.gaps == [gap for taken in one_by_one for gap in taken.gaps]


def test_a_gap_is_skipped_when_it_is_old():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 1, 3, now_s=100.0)

    assert reorder.expire(104.9) == Reordered()
    assert reorder.expire(105.0) == Reordered(ready=events(3), gaps=[(2, 2)])


def test_a_receive_notices_an_old_gap_by_itself():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 2, now_s=100.0)

    taken = take(reorder, 3, now_s=105.0)

    assert taken == Reordered(ready=events(2, 3), gaps=[(1, 1)])


def test_gaps_found_together_are_given_up_together():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 2, 4, now_s=100.0)
    take(reorder, 6, now_s=103.0)

    assert reorder.expire(105.0).gaps == [(1, 1), (3, 3)]
    assert reorder.expire(108.0).gaps == [(5, 5)]


def test_a_slow_source_that_shuffles_is_waited_for():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 4, now_s=100.0)
    take(reorder, 1, now_s=104.0)

    assert take(reorder, 2, now_s=108.0).ready == events(2)
    assert take(reorder, 3, now_s=112.0).ready == events(3, 4)


def test_flush_lets_out_everything_in_order():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 9, 2, 5, 4)

    flushed = reorder.flush()

    assert flushed == Reordered(ready=events(2, 4, 5, 9), gaps=[(1, 1), (3, 3), (6, 8)])
    assert reorder.expected == 10
    assert reorder.flush() == Reordered()


def test_restart_expects_one_again():
    reorder: Reorder[str] = Reorder(10, 5.0)
    take(reorder, 1, 2, 3)

    reorder.restart()

    assert take(reorder, 2, 1).ready == events(1, 2)


def test_a_far_number_that_stays_costs_nothing_more():
    """It is held while the stream goes on, and nothing grows beside it."""
    reorder: Reorder[str] = Reorder(2, 5.0)
    take(reorder, 10**9, 3, 5)

    for number in range(6, 5000):
        take(reorder, number + 1, number, now_s=number)

    assert reorder.held <= 2
    assert len(reorder._lowest) < 10
    assert len(reorder._reached) < 10


def test_no_events_are_no_trouble():
    reorder: Reorder[str] = Reorder(2, 5.0)

    assert take(reorder) == Reordered()
    assert reorder.expire(99.0) == Reordered()
