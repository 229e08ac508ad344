"""What came of a run, and whether that is good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.supervisor.comparisons import Comparison, idle
from penstock.supervisor.figures import StageCounts


@dataclass(frozen=True, slots=True)
class Times:
    """How long a run took: until every part was ready, then at work, then the rest."""

    starting_s: float
    working_s: float = 0.0
    rest_s: float = 0.0

    @property
    def total_s(self) -> float:
        return self.starting_s + self.working_s + self.rest_s


@dataclass(frozen=True, slots=True)
class Outcome:
    """``accounts`` are empty if a signal has ended it."""

    rows: list[StageCounts]
    accounts: list[Comparison]
    times: Times
    unfinished: list[str]
    """Stages that had something left to do."""
    over: bool = False
    """The streams have an end, and it was received."""
    notes: Sequence[str] = field(default=())
    """What else a person should know."""

    @property
    def good(self) -> bool:
        """Whether every stage did something and nothing is missing."""
        if self.interrupted:
            return False
        wrong = any(not one.right for one in self.accounts)
        return not (wrong or self.unfinished or self.idle)

    @property
    def idle(self) -> list[str]:
        """Stages that did nothing in this run.

        If the streams are over, an earlier run may have done it all; a source that was
        read by one has nothing to do.
        """
        if not self.over:
            return idle(self.rows)
        return [one for one in idle(self.rows, ever=True) if one != "source"]

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before all was worked off."""
        return not self.accounts
