from __future__ import annotations

import pytest

from penstock.tweets.pace import ALL, MessagePace


def test_a_steady_pace_is_its_rate() -> None:
    pace = MessagePace(100, steady=True)

    assert [pace.due(5, 5 + second) for second in (0, 0.5, 1, 10)] == [0, 50, 100, 1000]


def test_a_natural_pace_swings_by_an_order_of_magnitude_around_its_rate() -> None:
    pace = MessagePace(1000)

    rates = [pace.due(at / 10, at / 10 + 0.1) * 10 for at in range(10_000)]

    assert sum(rates) / len(rates) == pytest.approx(1000, rel=0.01)
    assert 8 < max(rates) / min(rates) < 11
    # Smooth: within a tenth of a second it changes by little.
    steps = [abs(one - two) for one, two in zip(rates, rates[1:], strict=False)]
    assert max(steps) < 100


def test_what_is_due_adds_up() -> None:
    pace = MessagePace(1000)

    assert pace.due(3, 9) == pytest.approx(pace.due(3, 5) + pace.due(5, 9), abs=1)


def test_without_a_rate_all_is_due() -> None:
    assert MessagePace(0).due(1, 1) == ALL
