from __future__ import annotations

from penstock.testing import VirtualClock


def test_it_stands_where_it_was_moved_to() -> None:
    clock = VirtualClock(100.0)

    clock.move_to(160.0)
    clock.advance(0.5)

    assert clock.now_s() == 160.5


def test_it_never_goes_back() -> None:
    clock = VirtualClock(100.0)

    clock.move_to(40.0)

    assert clock.now_s() == 100.0
