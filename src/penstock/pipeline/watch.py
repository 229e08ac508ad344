"""Watching a query: how far it is, and why it failed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.errors import QueryFailed

# The last line of what Python says of an error, in a task or in a batch.
_ERROR = re.compile(
    r"^(?:(?:\w+\.)+(\w+)|(\w+(?:Error|Exception))): (.+)$", re.MULTILINE
)
# What Spark says of the query itself.
_PLAN = "\n=== Streaming Query ==="

Progress = Mapping[str, Any]


@dataclass(slots=True)
class QueryCounts:
    """What the query has done; of what it said last."""

    events: int = 0
    """How far the tweets are in the firehose."""
    lag: int | None = None
    batches: int = 0
    batch_ms: int | None = None
    """How long the last one took."""

    def see(self, progress: Progress | None) -> None:
        if progress is not None:
            self.batches = int(progress["batchId"]) + 1
            self.batch_ms = progress["durationMs"].get("triggerExecution")
            self.events, latest = (sum(_ends(progress, at)) for at in _ENDS)
            self.lag = max(latest - self.events, 0)


@dataclass(slots=True)
class Running:
    """The batch that runs, as far as looks now and then can tell."""

    batch: int | None = None
    """Its number; None if none runs."""
    _since_s: float = 0.0

    def see(self, done: int, *, is_running: bool, now_s: float) -> None:
        """Take note that so many are done, and whether one runs."""
        number = done if is_running else None
        if number != self.batch:
            self.batch, self._since_s = number, now_s

    def ms(self, now_s: float) -> int | None:
        """For how long it was seen to run."""
        return None if self.batch is None else round((now_s - self._since_s) * 1000)


def is_running(status: Mapping[str, Any]) -> bool:
    """Whether a query is at a batch, and does not just look whether there is one."""
    return bool(status["isTriggerActive"]) and bool(status["isDataAvailable"])


def is_idle(status: Mapping[str, Any], lag: int | None) -> bool:
    """Whether a query has worked off all that there is.

    Without a batch there is no lag; that a query waits it says after it has looked.
    """
    waits = str(status["message"]).startswith("Waiting")
    return waits and not status["isTriggerActive"] and not lag


def failed(name: str, text: str) -> QueryFailed:
    """The error for a query that ended with this text of Spark's."""
    text = text.partition(_PLAN)[0]
    found = _ERROR.findall(text)
    if found:
        return QueryFailed(name, ": ".join(filter(None, found[-1])))
    lines = (line.strip() for line in text.splitlines())
    return QueryFailed(name, next(filter(None, lines), "no reason is known"))


_ENDS = ("endOffset", "latestOffset")


def _ends(progress: Progress, which: str) -> Iterable[int]:
    """The offsets of all topics of a query."""
    for source in progress["sources"]:
        offsets = source[which]
        if isinstance(offsets, str):
            offsets = json.loads(offsets)
        for topic, parts in (offsets or {}).items():
            if not topic.startswith("$"):
                yield from parts.values()
