from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.bucket import Bucket

# At which second, how much is taken, and how long one has to wait behind that.
Step = tuple[float, float, float]


@pytest.mark.parametrize(
    ("rate", "steps"),
    [
        pytest.param(10, [(0, 10, 0), (0, 1, 0.1)], id="a second's worth at once"),
        pytest.param(10, [(0, 10, 0), (1, 10, 0)], id="as much a second later"),
        pytest.param(10, [(99, 10, 0), (99, 5, 0.5)], id="no more after long silence"),
        pytest.param(10, [(0, 50, 4), (2, 0, 2), (4, 0, 0)], id="a batch too large"),
        pytest.param(10, [(0, 20, 1), (0, 10, 2)], id="debts add up"),
        pytest.param(10, [(0, 20, 1), (1, 1, 0.1)], id="paid is not full"),
        pytest.param(1, [(0, 1, 0), (0, 1, 1)], id="one event a second"),
        pytest.param(10, [(5, 20, 1), (0, 0, 1), (1, 0, 0)], id="a clock set back"),
    ],
)
def test_what_is_taken_and_how_long_one_waits(rate: float, steps: list[Step]) -> None:
    bucket = Bucket(rate, 0.0)

    for now_s, amount, wait_s in steps:
        bucket.take(amount, now_s)
        assert bucket.wait_s(now_s) == pytest.approx(wait_s)


@given(
    st.floats(1, 1e6),
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1e7)), max_size=50),
)
def test_whoever_waits_as_told_keeps_the_rate(
    rate: float, steps: list[tuple[float, float]]
) -> None:
    bucket, now_s, taken = Bucket(rate, 0.0), 0.0, 0.0

    for pause_s, amount in steps:
        now_s += pause_s + bucket.wait_s(now_s + pause_s)
        # What was taken before is within the rate, and a second's worth.
        assert taken <= rate * (now_s + 1) * (1 + 1e-6) + 1e-6
        bucket.take(amount, now_s)
        taken += amount
