"""Tweets through all stages: as many as go through, and then steadily less.

First the source sends what it can, and is held while too much is under way: what goes
through then is the most that there is, with a lag that is bounded. Then it sends nine
tenths of that, steadily, and nobody holds it: the lag has to stay bounded by itself.
In the end it sends half of it, to see how long a tweet is on its way.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bench.pipeline import looks, way
from bench.pipeline.line import Broken, Line, started, watch
from bench.pipeline.looks import Look
from bench.pipeline.scene import Scene
from bench.pipeline.store import mongod

# The source is held when so much is under way: of tweets one batch that Spark works at
# and one that waits for it, of the store's log and of changes what comes of them.
HELD_TWEETS = 30_000
HELD_BYTES = 256 << 20
HELD_CHANGES = 60_000
# What is bounded is so with what was on its way when the source was held.
SLACK = 1.5
STEADY, HALF = 0.9, 0.5
# A lag that grows by a larger part of what is offered is not bounded.
GROWTH = 0.05
# Before it counts: Java compiles what runs often.
WARM_UP_S, QUICK_WARM_UP_S = 120.0, 15.0
SECONDS, QUICK_SECONDS = 60.0, 20.0
# The most is the mean of some minutes: single ones differ by a tenth.
MOST_S = 180.0
STEADY_S, QUICK_STEADY_S = 600.0, 30.0
# After the rate has changed, before it counts.
SETTLE_S = 15.0
# Ends of batches that a rate is taken from.
BATCHES = 3
# For what takes longer than that, and for what is under way to be worked off.
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Through:
    """What went through all stages in a time."""

    rates: dict[str, float]
    """Tweets a second: into the firehose, and through Spark."""
    changes_per_s: float
    """Into the topics behind the store."""
    cpu_s: dict[str, float]
    """By stage, of the whole time."""
    seconds: float
    lag: int
    """The largest."""
    uncaptured_bytes: int
    unread: int
    growth: float
    """Of the lag, in tweets a second."""
    batch_p95_s: float = 0.0
    offered: float | None = None
    on_its_way_p95_s: float | None = None
    """From the firehose to an acknowledged change, if that was looked up."""

    @property
    def tweets_per_s(self) -> float:
        return min(self.rates.values())

    @property
    def tweets(self) -> float:
        """In that time; batches do not end with it."""
        return self.tweets_per_s * self.seconds

    @property
    def is_bounded(self) -> bool:
        """Whether nothing has piled up anywhere, and nothing is about to."""
        return (
            self.lag <= HELD_TWEETS * SLACK
            and self.uncaptured_bytes <= HELD_BYTES * SLACK
            and self.unread <= HELD_CHANGES * SLACK
            and self.growth <= GROWTH * (self.offered or self.tweets_per_s)
        )


@dataclass(frozen=True)
class Stages:
    most: Through
    steady: Through
    half: Through


def run(scene: Scene) -> Stages:
    quick = scene.settings.quick
    warm_up_s = QUICK_WARM_UP_S if quick else WARM_UP_S
    seconds = scene.seconds or (QUICK_SECONDS if quick else SECONDS)
    most_s = scene.seconds or (QUICK_SECONDS if quick else MOST_S)
    with started(scene.fresh("line")) as line:
        _look(line, warm_up_s, hold=True)
        most = through(_look(line, most_s, hold=True))
        steady_s = scene.seconds or (QUICK_STEADY_S if quick else STEADY_S)
        steady = _steady(line, most.tweets_per_s * STEADY, steady_s)
        return Stages(most, steady, _half(line, most.tweets_per_s * HALF, seconds))


def run_mongodb(scene: Scene) -> Through:
    """As many as go through into a MongoDB. Raises Missing."""
    quick = scene.settings.quick
    with mongod() as store, started(scene.fresh("mongodb"), store) as line:
        _look(line, QUICK_WARM_UP_S if quick else WARM_UP_S, hold=True)
        most_s = scene.seconds or (QUICK_SECONDS if quick else MOST_S)
        return through(_look(line, most_s, hold=True))


def _look(line: Line, seconds: float, *, hold: bool) -> list[Look]:
    """For so long; longer if that is too short for batches to end. Raises Broken."""
    end_s = time.monotonic() + seconds
    limit_s = end_s + PATIENCE_S

    def done(seen: list[Look]) -> bool:
        if seen[-1].at_s >= limit_s:
            raise Broken(f"no {BATCHES} batches in {seconds + PATIENCE_S:.0f} s")
        return seen[-1].at_s >= end_s and looks.batches(seen) >= BATCHES

    return watch(line, done, too_much if hold else None)


def too_much(look: Look) -> bool:
    """Whether so much is under way that the source has to wait."""
    return (
        look.lag >= HELD_TWEETS
        or look.uncaptured_bytes >= HELD_BYTES
        or look.unread >= HELD_CHANGES
    )


def _steady(line: Line, rate: float, seconds: float) -> Through:
    """What comes first does not count: it begins without a backlog."""
    _paced(line, rate)
    return through(_look(line, seconds, hold=False), offered=rate)


def _half(line: Line, rate: float, seconds: float) -> Through:
    _paced(line, rate)
    seen = _look(line, seconds, hold=False)
    found = through(seen, offered=rate)
    return replace(found, on_its_way_p95_s=way.p95_s(line.client, seen))


def _paced(line: Line, rate: float) -> None:
    """Have nothing under way, then have so many tweets a second, for a while."""
    limit_s = time.monotonic() + PATIENCE_S
    watch(
        line,
        lambda seen: seen[-1].lag == 0 or seen[-1].at_s >= limit_s,
        lambda _: True,
    )
    line.pace(rate)
    _look(line, SETTLE_S, hold=False)


def through(seen: list[Look], offered: float | None = None) -> Through:
    """What these looks come to. Raises Broken if a part has ended meanwhile."""
    if seen[-1].restarts > seen[0].restarts:
        raise Broken("a part has ended and was started again: nothing to compare")
    return Through(
        rates=looks.rates(seen),
        changes_per_s=looks.rate([(look.at_s, look.captured) for look in seen]),
        cpu_s=looks.spent(seen),
        seconds=seen[-1].at_s - seen[0].at_s,
        lag=max(look.lag for look in seen),
        uncaptured_bytes=max(look.uncaptured_bytes for look in seen),
        unread=max(look.unread for look in seen),
        growth=looks.growth(seen),
        batch_p95_s=looks.batch_p95_s(seen),
        offered=offered,
    )
