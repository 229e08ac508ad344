"""The topics that ``penstock up`` makes before any part writes to them.

Those that only tell how it goes are kept up to a size: the pipeline may run for days.
By size and not by age, because what Spark has still to read must not go while nothing
runs. Tweets and changes are kept whole. A topic that is there already stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client import Client
from penstock.supervisor.figures import counted
from penstock.supervisor.plan import COLLECTIONS, FIREHOSE, SAMPLES

MIB = 1 << 20
# Days of samples and statistics; hours of tags, of which each is told anew whenever it
# is used.
KEPT_BYTES = {
    SAMPLES: 64 * MIB,
    "logger_stats": 64 * MIB,
    "tweets_stats": 64 * MIB,
    "users_stats": 64 * MIB,
    "hashtag_stats": 256 * MIB,
}
# Whole segments go, so there have to be some.
SEGMENTS = 8


def wanted(*, spark: bool) -> dict[str, dict[str, int]]:
    """Topics and their settings."""
    found: dict[str, dict[str, int]] = {FIREHOSE: {}, SAMPLES: _limited(SAMPLES)}
    if spark:
        found |= {name: {} for name in COLLECTIONS}
        found |= {name: _limited(name) for name in KEPT_BYTES}
    return found


def make(client: Client, topics: Mapping[str, Mapping[str, int]]) -> None:
    """Have these topics. Raises ClientError."""
    known = counted(client).topics
    for name, settings in topics.items():
        if name not in known:
            client.ask("topics.create", name=name, **settings)


def _limited(name: str) -> dict[str, int]:
    size = KEPT_BYTES[name]
    return {"retention_bytes": size, "segment_bytes": size // SEGMENTS}
