"""What the stages do: totals, rates and lags, as the parts and the broker tell them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from penstock.client import Client
from penstock.supervisor.plan import FIREHOSE, subscriber
from penstock.supervisor.process import PartState, Process

# Rates are over what happened in this time, and over one step at least: Spark goes on
# by whole batches.
RATE_S = 5.0
# What has not moved for so long has stopped.
STILL_S = 15.0
READER = "subscriber "
# The name under which the query of Spark tells how far it is.
QUERY = "spark:pipeline-firehose"
# What a part has said longer ago says nothing of what it has left to do.
STALE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCounts:
    """One stage now. None: it is not known, or makes no sense for it."""

    name: str
    state: PartState
    events: int | None = None
    new: int | None = None
    """Of these, in this run."""
    rate: float | None = None
    lag: int | None = None
    restarts: int = 0
    errors: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """What the broker says: the length of topics, and where subscriptions stand."""

    topics: dict[str, int]
    places: dict[tuple[str, str], tuple[int, int]]
    """Position and lag, by subscriber and topic."""


def counted(client: Client) -> Counted:
    """Ask the broker. Raises ClientError."""
    topics = cast(dict[str, Any], client.ask("topics"))["topics"]
    found = cast(dict[str, Any], client.ask("subscriptions"))["subscriptions"]
    return Counted(
        {one["name"]: one["end_offset"] for one in topics},
        {
            (one["subscriber"], one["topic"]): (one["position"], one["lag"])
            for one in found
        },
    )


def letters_of(client: Client, gateway: str) -> int:
    """How many open dead letters a gateway has. Raises ClientError."""
    wanted = {"gateway": gateway}
    found = cast(dict[str, Any], client.ask("dead-letters.groups", filter=wanted))
    return sum(one["count"] for one in found["groups"])


class StageRates:
    """Events a second over the last seconds, by stage."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[float, int]]] = {}

    def rate(self, name: str, events: int | None, now_s: float) -> float | None:
        """Take note of a total; None until there are two of them."""
        if events is None:
            return None
        seen = self._seen.setdefault(name, deque())
        if seen and events < seen[-1][1]:  # it began anew
            seen.clear()
        known = bool(seen)
        stands = known and events == seen[-1][1]
        if stands and (len(seen) == 1 or now_s - seen[-1][0] >= STILL_S):
            seen.clear()  # when it moves again counts, not since when it stood
        if not stands or not seen:
            seen.append((now_s, events))
        while len(seen) > 2 and now_s - seen[1][0] >= RATE_S:
            seen.popleft()
        first_s, first = seen[0]
        if now_s > first_s:
            return (events - first) / (now_s - first_s)
        return 0.0 if known else None


class Total:
    """Counts on where a part begins anew with every start."""

    def __init__(self) -> None:
        self._before = 0
        self._last: int | None = None

    def total(self, events: int | None) -> int | None:
        """Take note of a count; None if there never was one."""
        if events is not None:
            if self._last is not None and events < self._last:
                self._before += self._last
            self._last = events
        return None if self._last is None else self._before + self._last


class StageFigures:
    """Makes the rows; remembers what was true while a part is away."""

    def __init__(self) -> None:
        self._rates = StageRates()
        self._sent = Total()
        self._before: dict[str, int] = {}
        self.counted = Counted({}, {})

    def begin(self, processes: Sequence[Process]) -> None:
        """What there is now comes from earlier runs."""
        rows = self.rows(processes, 0.0)
        self._before = {row.name: row.events or 0 for row in rows}
        self._rates = StageRates()

    def rows(self, processes: Sequence[Process], now_s: float) -> list[StageCounts]:
        return [self._row(process, now_s) for process in processes]

    def _row(self, process: Process, now_s: float) -> StageCounts:
        name, status = process.part.name, process.status
        events, lag = _number(status.get("events")), _lag(process, status)
        if name == "broker":
            topics = self.counted.topics
            events = sum(end for topic, end in topics.items() if topic[:1] != "$")
        elif name.startswith(READER):
            topic = name.removeprefix(READER)
            place = self.counted.places.get((subscriber(topic), topic))
            events, lag = place or (None, None)
        elif name == "source":
            events = self._sent.total(events)
        elif name == "spark":
            events, lag = processed(self.counted)
        running = process.state in (PartState.READY, PartState.ENDED)
        return StageCounts(
            name=name,
            state=process.state,
            events=events,
            new=None if events is None else events - self._before.get(name, 0),
            rate=self._rates.rate(name, events, now_s),
            lag=lag,
            restarts=process.restarts,
            errors=_number(status.get("errors")) or 0,
            note=_batch(status) if running else process.reason(),
        )


def processed(counted: Counted) -> tuple[int | None, int | None]:
    """How far Spark is in the firehose, and how much it has left."""
    return counted.places.get((QUERY, FIREHOSE), (None, None))


def grouped(value: int) -> str:
    """A number with a space between thousands."""
    return f"{value:,}".replace(",", " ")


def _lag(process: Process, status: Mapping[str, object]) -> int | None:
    """What it has left to do; None if it has not said so lately, or another one has."""
    reported_s = (_number(status.get("at_ms")) or 0) / 1000
    if status.get("pid") != process.pid or time.time() - reported_s > STALE_S:
        return None
    return _number(status.get("lag"))


def _batch(status: Mapping[str, object]) -> str:
    """What a part is at, if it goes on by batches: which one, and for how long."""
    number, ms = _number(status.get("batch")), _number(status.get("running_ms"))
    return "" if number is None or ms is None else f"batch {number}, {ms // 1000} s"


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
