"""Watching queries: how far they are, whether one failed, and whether they idle."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import QueryFailed

# Longer than a window of the statistics and the patience with its samples.
IDLE_S = 8.0
# The last line of what Python says of an error, in a task or in a batch.
_ERROR = re.compile(
    r"^(?:(?:\w+\.)+(\w+)|(\w+(?:Error|Exception))): (.+)$", re.MULTILINE
)
# What Spark says of the query itself.
_PLAN = "\n=== Streaming Query ==="

Progress = Mapping[str, Any]


@dataclass(slots=True)
class Counts:
    """What the queries have done; of what they said last."""

    events: int = 0
    """How far the tweets are in the firehose."""
    lag: int | None = None
    batches: int = 0

    def see(self, progress: Mapping[str, Progress | None]) -> None:
        """``progress`` is the last one of every query, by name."""
        known = [one for one in progress.values() if one is not None]
        self.batches = sum(int(one["batchId"]) + 1 for one in known)
        tweets = progress.get("tweets")
        if tweets is not None:
            self.events, latest = (sum(_ends(tweets, at)) for at in _ENDS)
            self.lag = max(latest - self.events, 0)


@dataclass(slots=True)
class Ticks:
    """When to write a tick, so that the last windows of statistics are told.

    A window is open until a later sample comes. When none does for a while, a tick has
    to be it; one is enough, until there are other samples.
    """

    clock: Callable[[], float] = time.monotonic
    _batch: int = field(default=-1, init=False)
    _since_s: float = field(default=0.0, init=False)
    _unseen: int = field(default=0, init=False)
    _open: bool = field(default=True, init=False)

    def due(self, progress: Progress | None) -> bool:
        """``progress`` is the last one of the statistics."""
        if progress is None:
            return False
        rows = int(progress["numInputRows"])
        if progress["batchId"] != self._batch and rows:
            self._batch, self._since_s = progress["batchId"], self.clock()
            self._open = self._open or rows > self._unseen
            self._unseen = max(self._unseen - rows, 0)
        if not any(one["numRowsTotal"] for one in progress["stateOperators"]):
            return False
        return self._open and self.clock() - self._since_s >= IDLE_S

    def written(self) -> None:
        """A tick has been written."""
        self._unseen += 1
        self._open = False


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
