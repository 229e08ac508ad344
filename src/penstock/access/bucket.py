"""A token bucket that may be in debt: what exceeds a rate waits, and is never refused.

It fills at ``rate`` a second, up to one second's worth. Whatever comes while it is not
in debt is taken, however much that is; then it is in debt, and who took has to wait
until that is paid. So the rate holds over time whatever the size of a batch.
"""

from __future__ import annotations


class Bucket:
    __slots__ = ("_at_s", "_level", "rate")

    def __init__(self, rate: float, now_s: float) -> None:
        self.rate = rate
        self._level = float(rate)
        self._at_s = now_s

    def take(self, amount: float, now_s: float) -> None:
        """Take that much, into debt if need be."""
        self._fill(now_s)
        self._level -= amount

    def wait_s(self, now_s: float) -> float:
        """How long until the debt is paid; 0 if there is none."""
        self._fill(now_s)
        return max(-self._level / self.rate, 0.0)

    def _fill(self, now_s: float) -> None:
        # If the clock was set back, nothing has passed, and time goes on from there.
        passed_s = max(now_s - self._at_s, 0.0)
        self._at_s = now_s
        self._level = min(self._level + passed_s * self.rate, float(self.rate))
