"""How long tweets are on their way: from the firehose to a change that is acknowledged.

Nobody looks at single tweets while they are measured. Looks say how many changes were
acknowledged when; the topics say afterwards which tweets those are, and when they came.
"""

from __future__ import annotations

import bisect
import time
from collections.abc import Iterator, Sequence

from bench.pipeline.line import TWEETS
from bench.pipeline.looks import Look, percentile
from penstock.client import Client
from penstock.model.event import Event
from penstock.supervisor.plan import FIREHOSE


def p95_s(client: Client, seen: Sequence[Look]) -> float:
    """Of tweets whose change was acknowledged between the first look and the last.

    A change is acknowledged when a look says so: never too early. What came before
    the first look is not known, so the second half counts.
    """
    middle = seen[len(seen) // 2 :]
    came = _came(client, seen[0].firehose, seen[-1].firehose)
    first, last = middle[0].acknowledged, middle[-1].acknowledged
    changes = [
        (one.offset, came[one.key])
        for one in _events(client, TWEETS, first, last)
        if one.key in came
    ]
    return percentile(list(_took(changes, middle)), 95)


def _came(client: Client, first: int, last: int) -> dict[bytes | None, float]:
    """When tweets came, by their id, on the clock of the looks."""
    ahead_s = time.time() - time.monotonic()
    events = _events(client, FIREHOSE, first, last)
    return {one.key: one.timestamp_ms / 1000 - ahead_s for one in events}


def _took(
    changes: Sequence[tuple[int, float]], seen: Sequence[Look]
) -> Iterator[float]:
    done = [look.acknowledged for look in seen]
    for offset, came_s in changes:
        yield seen[bisect.bisect_right(done, offset)].at_s - came_s


def _events(client: Client, topic: str, first: int, last: int) -> Iterator[Event]:
    for part in client.fetch_all(topic, first, last):
        for batch in part.batches:
            yield from batch.events()
