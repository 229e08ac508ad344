"""Whether everything is worked off: nothing is left to do, and nothing moves."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.supervisor.comparisons import behind
from penstock.supervisor.figures import StageCounts


class Quiet:
    """It is quiet when it has been so for some looks."""

    LOOKS = 15

    def __init__(self, now_s: float) -> None:
        self.moved_s = now_s
        """When something happened last."""
        self._last: list[tuple[str, int | None]] = []
        self._same = 0

    def again(self) -> None:
        """Count the looks anew."""
        self._same = 0

    def look(self, rows: Sequence[StageCounts], now_s: float) -> bool:
        now = [(row.name, row.events) for row in rows]
        self._same += 1
        if now != self._last:
            self._last, self._same, self.moved_s = now, 0, now_s
        return self._same >= self.LOOKS and not behind(rows)
