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
    processed: int
    """How many of them Spark has done."""
    captured: int = 0
    """Changes of the store that are in topics."""
    uncaptured_bytes: int = 0
    """Of the log of the store."""
    unread: int = 0
    """Changes that wait for subscribers."""
    acknowledged: int = 0
    """Changes of tweets that their subscriber has done."""
    batch: tuple[int, int] = (0, 0)
    """The number of Spark's last one, and how many milliseconds it took."""
    restarts: int = 0
    """Of parts that had ended."""
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    """By stage, since it was started."""

    @property
    def lag(self) -> int:
        """Tweets that wait for Spark."""
        return self.firehose - self.processed


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
    """How many ends of batches were seen."""
    return len(_ups([(look.at_s, look.processed) for look in looks]))


def batch_p95_s(looks: Sequence[Look]) -> float:
    """Of the batches that ended in that time, how long nearly all took."""
    took_ms = dict(look.batch for look in looks)
    took_ms.pop(looks[0].batch[0], None)
    return percentile([ms / 1000 for ms in took_ms.values()], 95)


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest that so many are not above; 0 of none."""
    ranked = sorted(values)
    return ranked[-(-len(ranked) * percent // 100) - 1] if ranked else 0.0


def rates(looks: Sequence[Look]) -> dict[str, float]:
    """Tweets a second into the firehose, and through Spark."""
    return {
        "firehose": rate([(look.at_s, look.firehose) for look in looks]),
        "spark": rate([(look.at_s, look.processed) for look in looks]),
    }


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
