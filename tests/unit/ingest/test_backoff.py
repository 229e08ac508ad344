from __future__ import annotations

from random import Random

import pytest

from penstock.ingest.source import BASE_S, LEAST_S, MOST_S, Backoff


class Longest(Random):
    def random(self) -> float:
        return 1.0


def test_it_doubles_up_to_a_bound() -> None:
    backoff = Backoff(Longest())

    waits = [backoff.next_s() for _ in range(100)]

    assert waits[:4] == [BASE_S, 2 * BASE_S, 4 * BASE_S, 8 * BASE_S]
    assert waits[-1] == MOST_S


def test_half_of_it_is_left_to_chance() -> None:
    waits = [Backoff(Random(seed)).next_s() for seed in range(100)]

    assert BASE_S / 2 <= min(waits) < 0.6 * BASE_S
    assert 0.9 * BASE_S < max(waits) <= BASE_S


def test_events_begin_it_anew() -> None:
    backoff = Backoff(Longest())
    backoff.next_s()
    backoff.next_s()

    backoff.succeeded()

    assert backoff.next_s() == BASE_S


@pytest.mark.parametrize(
    ("retry_ms", "first_s"),
    [(None, BASE_S), (2000, 2.0), (0, LEAST_S), (10**30, MOST_S)],
)
def test_a_server_says_where_it_begins(retry_ms: int | None, first_s: float) -> None:
    backoff = Backoff(Longest())

    backoff.retry(retry_ms)

    assert backoff.next_s() == first_s
