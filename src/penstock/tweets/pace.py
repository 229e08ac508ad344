"""How many messages are due by when: a given number a second, or more and less of it.

The rate swings smoothly between 0.18 and 1.82 of its mean, by an order of magnitude,
in two waves of different lengths. What is due is the area below that curve, so it is
known for any time without looking at those before.
"""

from __future__ import annotations

import sys
from math import cos, tau
from typing import Final

# Height and length in seconds of each wave.
WAVES: Final = ((0.52, 23.0), (0.298, 7.3))
# Due when as many as the reader takes are.
ALL: Final = sys.maxsize


class MessagePace:
    """``rate`` messages a second on average; 0 is as fast as they are read."""

    def __init__(self, rate: float, *, steady: bool = False) -> None:
        self._rate = rate
        self._waves = () if steady else WAVES

    def due(self, begin_s: float, now_s: float) -> int:
        """How many between two moments, both counted from the start of the server."""
        if not self._rate:
            return ALL
        return int(self._rate * (self._area(now_s) - self._area(begin_s)))

    def _area(self, at_s: float) -> float:
        swing = sum(
            height * length / tau * (1 - cos(tau * at_s / length))
            for height, length in self._waves
        )
        return at_s + swing
