"""Looks at the stages, some a second, and what they say together.

Spark goes on in steps, a batch at a time. So a rate is from the first step that was
seen to the last, and not from the edges of the time in which one looked.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Look:
    """How far everybody was at a moment."""

    at_s: float
    firehose: int
    """Tweets that came."""
    places: Mapping[str, int]
    """How many of them each query of Spark has done."""
    captured: int = 0
    """Changes of the store that are in topics."""
    uncaptured_bytes: int = 0
    """Of the log of the store."""
    unread: int = 0
    """Changes that wait for subscribers."""
    restarts: int = 0
    """Of parts that had ended."""
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    """By stage, since it was started."""

    @property
    def lag(self) -> int:
        """Tweets that wait for the query that is furthest behind."""
        return self.firehose - min(self.places.values(), default=0)


def rate(steps: Sequence[tuple[float, int]]) -> float:
    """Of counts by time, from the first time that they went up to the last."""
    ups = _ups(steps)
    if len(ups) < 2:  # too few to tell
        ups = [steps[0], steps[-1]]
    (first_s, first), (last_s, last) = ups[0], ups[-1]
    return (last - first) / (last_s - first_s)


def _ups(steps: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    both = zip(steps, steps[1:], strict=False)
    return [later for earlier, later in both if later[1] > earlier[1]]


def batches(looks: Sequence[Look]) -> int:
    """How many ends of batches were seen, of the query with the fewest."""
    return min(
        len(_ups([(look.at_s, look.places[name]) for look in looks]))
        for name in looks[0].places
    )


def rates(looks: Sequence[Look]) -> dict[str, float]:
    """Tweets a second into the firehose, and through each of the queries."""
    names = looks[0].places
    found = {
        name: rate([(look.at_s, look.places[name]) for look in looks]) for name in names
    }
    return {"firehose": rate([(look.at_s, look.firehose) for look in looks]), **found}


def growth(looks: Sequence[Look]) -> float:
    """Of the lag, in tweets a second: the mean of one half beside that of the other.

    It goes up and down with every batch, so single looks say nothing.
    """
    half = len(looks) // 2
    if not half:
        return 0.0
    earlier, later = (
        statistics.fmean(look.lag for look in part)
        for part in (looks[:half], looks[half:])
    )
    return (later - earlier) / (looks[half].at_s - looks[0].at_s)


def spent(looks: Sequence[Look]) -> dict[str, float]:
    """CPU seconds of each stage from the first look to the last."""
    first, last = looks[0].cpu_s, looks[-1].cpu_s
    return {stage: seconds - first.get(stage, 0.0) for stage, seconds in last.items()}
