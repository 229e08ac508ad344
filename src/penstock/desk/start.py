"""Where a subscription may begin, as a peer says it."""

from __future__ import annotations

from penstock.broker.starts import TIME
from penstock.errors import InvalidOption

_WORDS = ("latest", "earliest")
_LIMIT = "'latest', 'earliest', an offset, or 'time:' with milliseconds"


def accepted_start(start: str | int) -> str | int:
    """A start that the broker can resolve; raises InvalidOption."""
    if isinstance(start, int):
        if start < 0:
            raise InvalidOption("start", start, "an offset of 0 or more")
        return start
    digits = start.removeprefix(TIME)
    # More digits than fit into 64 bits mean no time.
    is_time = digits != start and digits.isascii() and digits.isdigit()
    if start not in _WORDS and not (is_time and len(digits) <= 18):
        raise InvalidOption("start", start[:80], _LIMIT)
    return start
