"""Moments: those that a publisher names, and those that were planned by a clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

# The end of the year 9999: what is later can be shown by hardly anything.
MAX_TIME_MS = 253_402_300_799_999
TIME_LIMIT = "milliseconds since 1970 or an RFC 3339 time, before the year 10000"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


def time_ms(given: object) -> int | None:
    """A time as publishers write it, in milliseconds; None if it is none.

    A whole number of milliseconds, or that as text, or RFC 3339, or a ``datetime``
    that has a time zone.
    """
    if isinstance(given, str):
        given = _parsed(given)
    if isinstance(given, datetime) and given.tzinfo is not None:
        given = (given - _EPOCH) // _MS
    if isinstance(given, int) and not isinstance(given, bool):
        return given if 0 < given <= MAX_TIME_MS else None
    return None


def seconds_of(given: float | timedelta) -> float:
    """A length of time."""
    return given.total_seconds() if isinstance(given, timedelta) else given


def _parsed(text: str) -> int | datetime | None:
    if text.isascii() and text.isdigit():
        return int(text[:20])
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def is_due(at_s: float, interval_s: float, now_s: float) -> bool:
    """Whether a moment has come that was planned ``interval_s`` ahead.

    It has too if it is further away than it ever was: then the clock was set back, and
    it is not waited for until it is there again.
    """
    return not 0 < at_s - now_s <= interval_s
