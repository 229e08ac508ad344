from __future__ import annotations

import pytest

from penstock.delivery.retry import GiveUp, TryAgain, after_failure
from penstock.model.policy import Exhausted, Policy


@pytest.mark.parametrize(
    ("tries", "pause_s"),
    [(1, 2.0), (2, 6.0), (3, 18.0), (4, 50.0), (5, 50.0), (10_000, 50.0)],
)
def test_pause_grows_up_to_its_limit(tries: int, pause_s: float) -> None:
    policy = Policy(backoff_s=2.0, backoff_factor=3.0, max_backoff_s=50.0)

    assert after_failure(policy, tries, 100.0) == TryAgain(100.0 + pause_s)


def test_without_a_pause_the_next_try_follows_at_once() -> None:
    assert after_failure(Policy(), 7, 100.0) == TryAgain(100.0)


@pytest.mark.parametrize("then", ["dead-letter", "suspend"])
@pytest.mark.parametrize("tries", [3, 4])
def test_last_try_is_followed_by_what_the_policy_says(
    then: Exhausted, tries: int
) -> None:
    policy = Policy(tries=3, exhausted=then)

    assert after_failure(policy, 2, 100.0) == TryAgain(100.0)
    assert after_failure(policy, tries, 100.0) == GiveUp(then)
