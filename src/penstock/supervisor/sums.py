"""What the statistics tell of, and what the samples have that they are made of.

Sums are kept in a file with how far the topics were read: these keep no more than the
last days, and nothing is read twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.client import Client
from penstock.errors import ServerRefused
from penstock.files import Files, replace_file
from penstock.supervisor.part import told
from penstock.supervisor.plan import SAMPLES

# The topics of statistics, and their field that is a sum.
STATISTICS = {
    "logger_stats": "crashes",
    "tweets_stats": "processed",
    "users_stats": "processed",
}
# The server's error where the beginning of what is asked for is gone.
_GONE = "OffsetOutOfRange"


class Sums:
    """Sums over whole topics; read further with every look."""

    def __init__(self, path: Path | None = None) -> None:
        """``path``: where they are kept, and go on from."""
        kept: dict[str, Any] = {} if path is None else told(path)
        self.samples: Counter[str] = Counter(kept.get("samples"))
        """By kind."""
        self.told: Counter[str] = Counter(kept.get("told"))
        """By topic."""
        self.is_whole: bool = kept.get("whole", True)
        """Whether nothing went before it was read."""
        self._places: dict[str, int] = dict(kept.get("places", {}))
        self._path = path

    def look(self, client: Client, ends: Mapping[str, int]) -> None:
        """Read on to where the topics end. Raises ClientError."""
        moved = False
        for topic in (SAMPLES, *STATISTICS):
            end, place = ends.get(topic, 0), self._places.get(topic, 0)
            if place < end:
                self._take(client, topic, place, end)
                moved = True
        if moved:
            self._keep()

    def _take(self, client: Client, topic: str, place: int, end: int) -> None:
        """All that is there, or nothing: an error in between leaves no trace."""
        found: Counter[str] = Counter()
        try:
            for one in _read(client, topic, place, end):
                if topic == SAMPLES:
                    found[one["kind"]] += one["count"]
                else:
                    found[topic] += one[STATISTICS[topic]]
        except ServerRefused as error:
            if error.error != _GONE:
                raise
            self.is_whole = False
        (self.samples if topic == SAMPLES else self.told).update(found)
        self._places[topic] = end

    def _keep(self) -> None:
        if self._path is not None:
            kept = {
                "samples": self.samples,
                "told": self.told,
                "whole": self.is_whole,
                "places": self._places,
            }
            data = json.dumps(kept).encode() + b"\n"
            replace_file(Files(), str(self._path), data, sync=False)


def _read(client: Client, topic: str, first: int, end: int) -> Iterator[dict[str, Any]]:
    for part in client.fetch_all(topic, first, end):
        for batch in part.batches:
            for one in batch.events():
                yield json.loads(one.payload)
