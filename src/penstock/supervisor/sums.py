"""What the statistics tell of, and what the samples have that they are made of."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from penstock.client import Client
from penstock.supervisor.plan import SAMPLES

# The topics of statistics, and their field that is a sum.
STATISTICS = {
    "logger_stats": "crashes",
    "tweets_stats": "processed",
    "users_stats": "processed",
}


class Sums:
    """Sums over whole topics; read further with every look."""

    def __init__(self) -> None:
        self.samples: Counter[str] = Counter()
        """By kind."""
        self.told: Counter[str] = Counter()
        """By topic."""
        self._places: dict[str, int] = {}

    def look(self, client: Client, ends: Mapping[str, int]) -> None:
        """Read on to where the topics end. Raises ClientError."""
        for topic in (SAMPLES, *STATISTICS):
            end, place = ends.get(topic, 0), self._places.get(topic, 0)
            if place < end:
                self._add(topic, _read(client, topic, place, end))
                self._places[topic] = end

    def _add(self, topic: str, events: list[dict[str, Any]]) -> None:
        for one in events:
            if topic == SAMPLES:
                self.samples[one["kind"]] += one["count"]
            else:
                self.told[topic] += one[STATISTICS[topic]]


def _read(client: Client, topic: str, first: int, end: int) -> list[dict[str, Any]]:
    parts = client.fetch_all(topic, first, end)
    batches = (batch for part in parts for batch in part.batches)
    return [json.loads(one.payload) for batch in batches for one in batch.events()]
