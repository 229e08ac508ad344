"""Moments that were planned by a clock that somebody may set."""

from __future__ import annotations


def is_due(at_s: float, interval_s: float, now_s: float) -> bool:
    """Whether a moment has come that was planned ``interval_s`` ahead.

    It has too if it is further away than it ever was: then the clock was set back, and
    nobody waits until it is there again.
    """
    return not 0 < at_s - now_s <= interval_s
