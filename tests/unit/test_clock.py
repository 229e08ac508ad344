from __future__ import annotations

import time

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
