"""What the statistics have told of.

Sums are kept in a file with how far the topics were read: these keep no more than the
last days, and nothing is read twice.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.client import Client
from penstock.errors import OffsetOutOfRange
from penstock.files import Files, replace_file
from penstock.model.event import Event
from penstock.supervisor.part import read_json
from penstock.supervisor.plan import SAMPLES

# The topics of statistics, and their field that is a sum.
STATISTICS = {
    "logger_stats": "crashes",
    "tweets_stats": "processed",
    "users_stats": "processed",
}


class Sums:
    """Sums over whole topics; read further with every look."""

    def __init__(self, path: Path | None = None) -> None:
        """``path``: where they are kept, and go on from."""
        kept: dict[str, Any] = {} if path is None else read_json(path)
        self.reported: Counter[str] = Counter(kept.get("told"))
        """By topic."""
        self.is_whole: bool = kept.get("whole", True)
        """Whether nothing went before it was read."""
        self.waiting = 0
        """Panics behind the last window: they are told with the next one."""
        self._reported_to_ms: int = kept.get("told_to_ms", 0)
        self._places: dict[str, int] = dict(kept.get("places", {}))
        self._path = path

    def look(self, client: Client, ends: Mapping[str, int]) -> None:
        """Read on to where the topics end. Raises ClientError."""
        moved = False
        for topic in STATISTICS:
            end, place = ends.get(topic, 0), self._places.get(topic, 0)
            if place < end:
                self._take(client, topic, place, end)
                moved = True
        if ends.get(SAMPLES):
            self._wait(client, ends[SAMPLES])
        if moved:
            self._keep()

    def _take(self, client: Client, topic: str, place: int, end: int) -> None:
        """All that is there, or nothing: an error in between leaves no trace."""
        found, reported_to_ms = 0, self._reported_to_ms
        try:
            for event in _events(client, topic, place, end):
                one = json.loads(event.payload)
                found += one[STATISTICS[topic]]
                reported_to_ms = max(reported_to_ms, one.get("window_end_ms", 0))
        except OffsetOutOfRange:
            self.is_whole = False
        self.reported[topic] += found
        self._reported_to_ms = reported_to_ms
        self._places[topic] = end

    def _wait(self, client: Client, end: int) -> None:
        place, waiting = self._places.get(SAMPLES, 0), 0
        try:
            for one in _events(client, SAMPLES, place, end):
                if one.timestamp_ms < self._reported_to_ms and not waiting:
                    place = one.offset + 1
                else:
                    waiting += _panics(one.payload)
        except OffsetOutOfRange:
            self.is_whole = False
            place = end
        self._places[SAMPLES], self.waiting = place, waiting

    def _keep(self) -> None:
        if self._path is not None:
            kept = {
                "told": self.reported,
                "whole": self.is_whole,
                "places": self._places,
                "told_to_ms": self._reported_to_ms,
            }
            data = json.dumps(kept).encode() + b"\n"
            replace_file(Files(), str(self._path), data, sync=False)


def _events(client: Client, topic: str, first: int, end: int) -> Iterator[Event]:
    for part in client.fetch_all(topic, first, end):
        yield from part.events()


def _panics(payload: bytes) -> int:
    """How many a sample tells; what others have written to its topic tells none."""
    with contextlib.suppress(ValueError, RecursionError):
        match json.loads(payload):
            case {"kind": "panics", "count": int(count)}:
                return count
    return 0
