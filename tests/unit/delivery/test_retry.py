from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery.retry import NoMoreTries, TryAgain, after_failure
from penstock.model.policy import Exhausted, Policy


@pytest.mark.parametrize(
    ("tries", "pause_s"),
    [(1, 2.0), (2, 6.0), (3, 18.0), (4, 50.0), (5, 50.0), (10_000, 50.0)],
)
def test_pause_grows_up_to_its_limit(tries: int, pause_s: float) -> None:
    policy = Policy(backoff_s=2.0, backoff_factor=3.0, max_backoff_s=50.0)

    assert after_failure(policy, tries, 100.0, 7) == TryAgain(100.0 + pause_s)


def test_without_a_pause_the_next_try_follows_at_once() -> None:
    assert after_failure(Policy(), 7, 100.0, 7) == TryAgain(100.0)


@pytest.mark.parametrize("then", ["dead-letter", "suspend"])
@pytest.mark.parametrize("tries", [3, 4])
def test_last_try_is_followed_by_what_the_policy_says(
    then: Exhausted, tries: int
) -> None:
    policy = Policy(tries=3, exhausted=then)

    assert after_failure(policy, 2, 100.0, 7) == TryAgain(100.0)
    assert after_failure(policy, tries, 100.0, 7) == NoMoreTries(then)


def pause(offset: int, tries: int, jitter: float) -> float:
    policy = Policy(backoff_s=4.0, backoff_factor=1.0, jitter=jitter)
    decision = after_failure(policy, tries, 0.0, offset)
    assert isinstance(decision, TryAgain)
    return decision.at_s


@given(
    offset=st.integers(0, 2**63), tries=st.integers(1, 10_000), jitter=st.floats(0, 1)
)
def test_jitter_only_shortens_a_pause_by_its_part_and_always_alike(
    offset: int, tries: int, jitter: float
) -> None:
    found = pause(offset, tries, jitter)

    assert 4.0 * (1 - jitter) <= found <= 4.0
    assert found == pause(offset, tries, jitter)


def test_jitter_spreads_events_that_failed_together() -> None:
    pauses = sorted(pause(offset, 1, 0.5) for offset in range(1000))

    gaps = [b - a for a, b in itertools.pairwise([2.0, *pauses, 4.0])]
    assert max(gaps) < 0.05
    assert pause(0, 1, 0.5) != pause(0, 2, 0.5)
