"""Samples: how long something took, and how many there were, as events of a topic."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from penstock.pipeline.writing import Bulk

TOPIC = "pipeline_samples"
PROCESSING = "processing"
TICK = "tick"


def sample(kind: str, ms: float | None, count: int) -> bytes:
    """The payload of a sample of now."""
    at_ms = time.time_ns() // 1_000_000
    told = {
        "kind": kind,
        "ms": None if ms is None else round(ms, 3),
        "count": count,
        "at_ms": at_ms,
    }
    return json.dumps(told).encode()


def of_bulks(bulks: Iterable[Bulk]) -> list[bytes]:
    """A sample of each bulk; it counts tweets, not the documents that they became."""
    return [sample(bulk.collection, bulk.ms, bulk.events) for bulk in bulks]
