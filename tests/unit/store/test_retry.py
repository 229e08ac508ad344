from __future__ import annotations

import logging

import pytest

from penstock.errors import StoreUnreachable
from penstock.store import retry
from penstock.store.retry import Away, retried


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)


def test_attempt_is_made_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    left = [Away("a"), Away("b")]

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    with caplog.at_level(logging.INFO):
        assert retried(attempt, "pg://h", 10) == "done"
    assert [record.__dict__["action"] for record in caplog.records] == ["store_retried"]


def test_attempts_end_with_their_time() -> None:
    def attempt() -> None:
        raise Away("it is not there")

    with pytest.raises(StoreUnreachable, match=r"pg://h for 0.02 s: it is not there"):
        retried(attempt, "pg://h", 0.02)


def test_other_errors_are_not_tried_again() -> None:
    made = []

    def attempt() -> None:
        made.append(1)
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        retried(attempt, "pg://h", 10)
    assert made == [1]
