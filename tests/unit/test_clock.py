from __future__ import annotations

import time

import pytest

from penstock.clock import ManualClock, SystemClock


def test_system_clock_tells_the_time_of_the_machine() -> None:
    before = time.time()

    now_s = SystemClock().now_s()

    assert before <= now_s <= time.time()


def test_manual_clock_stands_until_it_is_advanced() -> None:
    clock = ManualClock(100.0)
    before = (clock.now_s(), clock.now_s())

    clock.advance(1.5)

    assert before == (100.0, 100.0)
    assert clock.now_s() == 101.5


def test_system_clock_notices_that_somebody_set_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    before = clock.was_set_s()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)

    set_back, again = clock.was_set_s(), clock.was_set_s()

    assert (before, again) == (0.0, 0.0)
    assert -3601 < set_back < -3599


def test_a_clock_that_is_minded_is_set_when_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    clock.was_set_s()
    before = clock.now_s()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)

    not_yet = clock.now_s()
    clock.was_set_s()
    then = clock.now_s()

    assert before <= not_yet < before + 60
    assert -3601 < then - not_yet < -3500
