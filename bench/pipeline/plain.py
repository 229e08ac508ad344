"""The same work without Spark: one plain process of Python, over a full topic.

    python -m bench.pipeline.plain SERVER STORE EVENTS SKIPPED

It reads the firehose through the client, does with each part what a task of Spark does,
keeps totals in dicts, and writes into the same store. It keeps no checkpoint, so it has
to begin again after a crash: what it does is the work itself, and no more. It says how
long that took, and how much CPU, from after the first SKIPPED events on.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator

import msgspec

from penstock.client import Client, connect
from penstock.pipeline.application import OpenStore
from penstock.pipeline.batch import HASHTAGS
from penstock.pipeline.documents import ENGAGEMENTS, TWEETS, USERS
from penstock.pipeline.notes import note_of
from penstock.pipeline.portion import TweetPortion, portion
from penstock.pipeline.statistics import Windows, added, closed
from penstock.pipeline.writing import Opener, write
from penstock.supervisor.plan import FIREHOSE

# Events at a time, as many as one Arrow batch of the pipeline has.
PART = 10_000


class Took(msgspec.Struct):
    """What it says in the end."""

    events: int
    seconds: float
    cpu_s: float


class Plain:
    """Use ``take`` for one part of the firehose after the other."""

    def __init__(self, client: Client, opener: Opener) -> None:
        self._client = client
        self._opener = opener
        self._users: dict[str, tuple[int, float]] = {}
        self._tags: Counter[str] = Counter()
        self._windows = Windows()

    def take(self, events: list[tuple[int, int, bytes]]) -> None:
        found = portion(events)
        tweets_ms = write(self._opener, TWEETS, found.documents())
        users_ms = write(self._opener, USERS, found.authors())
        write(self._opener, ENGAGEMENTS, list(self._engagements(found)))
        note = note_of(found, time.time_ns() // 1_000_000, tweets_ms, users_ms)
        added(self._windows, [note.windows])
        self._tell(found)

    def _engagements(self, found: TweetPortion) -> Iterator[tuple[str, int, bytes]]:
        for key, engaged in found.users.items():
            count, total = self._users.get(key, (0, 0.0))
            count, total = count + engaged.count, total + engaged.sum
            self._users[key] = count, total
            last = engaged.last
            document = {
                "id_str": key,
                "screen_name": last.tweet.author.screen_name,
                "count": count,
                "sum": total,
                "avg": total / count,
                "last_score": last.engagement,
                "last_tweet_id": last.tweet.key,
            }
            yield key, last.version, _encode(document)

    def _tell(self, found: TweetPortion) -> None:
        self._tags.update(found.tags)
        told = {
            HASHTAGS: [
                _encode({"tag": tag, "count": self._tags[tag]}) for tag in found.tags
            ],
            **closed(self._windows, self._windows.reached_ms),
        }
        for topic, payloads in told.items():
            if payloads:
                self._client.publish(topic, payloads)


def parts(client: Client, end: int) -> Iterator[list[tuple[int, int, bytes]]]:
    """The events of the firehose, so many at a time."""
    part: list[tuple[int, int, bytes]] = []
    for found in client.fetch_all(FIREHOSE, 0, end):
        for batch in found.batches:
            part += [
                (one.offset, one.timestamp_ms, one.payload) for one in batch.events()
            ]
        while len(part) >= PART:
            yield part[:PART]
            part = part[PART:]
    if part:
        yield part


def main() -> None:
    server, store, events, skipped = sys.argv[1:]
    opener = OpenStore(store)
    with connect(server, name="bench-plain") as client:
        plain = Plain(client, opener)
        began_s = cpu_s = 0.0
        done = begun = 0
        for part in parts(client, int(events)):
            plain.take(part)
            done += len(part)
            if not begun and done >= int(skipped):
                begun, began_s, cpu_s = done, time.perf_counter(), time.process_time()
    took = Took(
        done - begun, time.perf_counter() - began_s, time.process_time() - cpu_s
    )
    print(msgspec.json.encode(took).decode(), flush=True)


_encode = msgspec.json.Encoder().encode

if __name__ == "__main__":
    main()
