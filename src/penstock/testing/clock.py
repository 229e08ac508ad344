"""A clock for tests: it stands still until it is told to move."""

from __future__ import annotations

from penstock.clock import ManualClock


class VirtualClock(ManualClock):
    """The clock of a harness, and of whatever else a test gives it to.

    To move it alone changes what the time is, and nothing happens; have the harness
    ``advance`` to have happen what is due meanwhile.
    """

    def move_to(self, at_s: float) -> None:
        """Stand at that moment; never goes back."""
        self._now_s = max(self._now_s, at_s)
