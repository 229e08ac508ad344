"""What is done with every batch of a query: written to the store, then told to topics.

Any of it may be cut off by a crash, and is then done again with the same events. That
neither loses nor doubles anything:

- Documents are written with the offset as version, and an old or equal version changes
  nothing. Values of running totals are totals.
- What goes to topics goes through a feed, in one step with the number of the batch; a
  batch whose number is there has been told. Dead letters go before, in parts; with
  each part the note says up to which offset they are told.
- A feed belongs to the checkpoint of its query: without that, numbers begin again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql import DataFrame, Observation
from pyspark.sql.functions import count_if, struct, to_json

from penstock.client.feed import Events, Feed
from penstock.pipeline import running, samples
from penstock.pipeline.changes import TWEETS, changes
from penstock.pipeline.documents import documents
from penstock.pipeline.engagement import engagement
from penstock.pipeline.letters import Letter, parts
from penstock.pipeline.parse import reason, tweets, unfit
from penstock.pipeline.samples import PROCESSING, sample
from penstock.pipeline.sentiment import sentiment, vader
from penstock.pipeline.users import users
from penstock.pipeline.writing import Opener, write

HASHTAGS = "hashtag_stats"

Strays = Sequence[tuple[int, str]]
"""Offsets of events that are not taken, ascending, and why."""


@dataclass(frozen=True, slots=True)
class Told:
    """What the note of a feed says.

    ``17``: all of batch 17; ``17 letters to 40``: its letters, up to that offset.
    """

    batch: int = -1
    """The last one that is told, or is being told."""
    letters_to: int | None = None
    """None: the batch is told."""

    @classmethod
    def of(cls, note: str) -> Self:
        batch, _, offset = note.partition(_LETTERS)
        return cls(int(batch or -1), int(offset) if offset else None)

    def __str__(self) -> str:
        letters = "" if self.letters_to is None else f"{_LETTERS}{self.letters_to}"
        return f"{self.batch}{letters}"


_LETTERS = " letters to "


@dataclass(slots=True)
class Outlet:
    """What the batches of one query tell topics, each of them once."""

    open_feed: Callable[[str], Feed]
    _feed: Feed | None = field(default=None, init=False)

    def put(
        self,
        frame: DataFrame,
        batch: int,
        events: Events,
        letters: Iterable[Letter] = (),
    ) -> None:
        """Tell it, unless that was done before; ``frame`` is one of the batch.

        Offsets of the letters ascend, and are the same if it is asked again.
        """
        if self._feed is None:
            self._feed = self.open_feed(feed_name(query_of(frame)))
        told = Told.of(self._feed.note)
        if batch < told.batch or (batch == told.batch and told.letters_to is None):
            return
        told_to = told.letters_to if batch == told.batch else None
        left = (one for one in letters if told_to is None or one.offset > told_to)
        for part in parts(left):
            self._feed.put(
                [],
                note=str(Told(batch, part[-1].offset)),
                letters=[(letter.reason, letter.raw) for letter in part],
            )
        self._feed.put([events], note=str(batch))

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()


@dataclass(frozen=True, slots=True)
class TweetBatch:
    """Tweets and users to the store, samples and dead letters to the broker."""

    outlet: Outlet
    opener: Opener
    letters: Callable[[Strays], Iterable[Letter]]
    """Reads what the strays are."""

    def __call__(self, events: DataFrame, batch: int) -> None:
        began_s = time.perf_counter()
        seen = Observation()
        watched = events.observe(seen, count_if(unfit()).alias("unfit"))
        bulks = write(changes(scored(watched)), self.opener)
        told = samples.of_bulks(bulks)
        strays = strays_of(events) if seen.get["unfit"] else []
        count = sum(bulk.events for bulk in bulks if bulk.collection == TWEETS)
        took_ms = (time.perf_counter() - began_s) * 1000
        told.append(sample(PROCESSING, took_ms, count))
        letters = self.letters(strays)
        self.outlet.put(events, batch, Events(samples.TOPIC, told), letters)


@dataclass(frozen=True, slots=True)
class RunningBatch:
    """Totals of users to the store."""

    outlet: Outlet
    opener: Opener

    def __call__(self, totals: DataFrame, batch: int) -> None:
        bulks = write(running.changes(totals), self.opener)
        if bulks:
            told = Events(samples.TOPIC, samples.of_bulks(bulks))
            self.outlet.put(totals, batch, told)


@dataclass(frozen=True, slots=True)
class HashtagBatch:
    """Counts of tags to their topic; the key of an event is the tag."""

    outlet: Outlet

    def __call__(self, counts: DataFrame, batch: int) -> None:
        rows = counts.select("tag", to_json(struct("tag", "count"))).collect()
        rows.sort()
        if rows:
            payloads = [value.encode() for _, value in rows]
            keys = [tag.encode() for tag, _ in rows]
            self.outlet.put(counts, batch, Events(HASHTAGS, payloads, keys))


def scored(events: DataFrame) -> DataFrame:
    """Events of the firehose as tweets with scores and documents."""
    return users(documents(vader(sentiment(engagement(tweets(events))))))


def strays_of(events: DataFrame) -> Strays:
    """The events of the firehose that are not taken."""
    strays = events.where(unfit()).select("offset", reason())
    return [(offset, text) for offset, text in strays.orderBy("offset").collect()]


def feed_name(query: str) -> str:
    return f"pipeline:{query}"


def query_of(frame: DataFrame) -> str:
    """The id of the query that a batch is of: that of its checkpoint."""
    context = frame.sparkSession.sparkContext
    query = context.getLocalProperty("sql.streaming.queryId")
    assert query is not None, "Spark tells it in the thread that runs the batch"
    return query
