"""What the driver does with every batch of the query.

The tasks have written tweets and users by then. Any of it may be cut off by a crash,
and is then done again with the same events: see outlet.py.

Totals of a batch are worked off by the task that has Spark's state of them. Totals of
users become documents of the store. What only the driver can tell topics goes on to it:
counts of tags, and the notes of the tasks in front.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, inline
from pyspark.sql.pandas.functions import arrow_udf

from penstock.client.feed import FeedEvents
from penstock.model.event import MESSAGE_FIELD
from penstock.pipeline import notes
from penstock.pipeline.documents import ENGAGEMENTS
from penstock.pipeline.letters import Letter
from penstock.pipeline.notes import PortionNote
from penstock.pipeline.outlet import FeedNote, QueryFeed
from penstock.pipeline.portion import Stray
from penstock.pipeline.statistics import added, closed
from penstock.pipeline.task import NOTE, TAG, USER, LastTweet
from penstock.pipeline.writing import Opener, write
from penstock.store.store import DocumentRow

COLUMNS = ("kind", "key", "count", "sum", "last")
FOR_DRIVER = "ARRAY<STRUCT<kind: STRING, key: STRING, told: STRING>>"
_FOR_DRIVER = pa.list_(
    pa.struct([("kind", pa.string()), ("key", pa.string()), ("told", pa.string())])
)


@dataclass(frozen=True, slots=True)
class Totals:
    """``run`` is called by Spark, with the columns that are summed up."""

    opener: Opener

    def run(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        for columns in batches:
            rows = pa.table(list(columns), list(COLUMNS)).to_pylist()
            users = [_engagement(row) for row in rows if row["kind"] == USER]
            if users:
                write(self.opener, ENGAGEMENTS, users)
            for_driver = [list(_for_driver(rows)), *([None] * (len(rows) - 1))]
            yield pa.array(for_driver if rows else [], _FOR_DRIVER)


def _engagement(row: dict[str, Any]) -> DocumentRow:
    last = row["last"]
    tweet = _decode(last["told"])
    document = {
        "id_str": row["key"],
        "screen_name": tweet.screen_name,
        "count": row["count"],
        "sum": row["sum"],
        "avg": row["sum"] / row["count"],
        "last_score": tweet.score,
        "last_tweet_id": tweet.tweet_id,
    }
    return row["key"], last["version"], _encode(document)


def _for_driver(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, object]]:
    for row in rows:
        if row["kind"] == TAG:
            value = _encode({"tag": row["key"], "count": row["count"]}).decode()
        elif row["kind"] == NOTE:
            value = row["last"]["told"]
        else:
            continue
        yield {"kind": row["kind"], "key": row["key"], "told": value}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LastTweet).decode


HASHTAGS = "hashtag_stats"
# Of a statistic: which field of it is its message.
_SHOWN = {MESSAGE_FIELD: "text"}
# After this time without a tweet a window is over, though none of a later one has come.
IDLE_MS = 2_000

SamplesOf = Callable[[int, int], tuple[int, list[tuple[int, int]]]]
"""From an offset on up to a time: the next one, and when there were how many panics."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Called by Spark with the totals that a batch has changed, and its number."""

    outlet: QueryFeed
    opener: Opener
    letters: Callable[[Sequence[Stray]], Iterable[Letter]]
    """Reads what the strays are."""
    samples: SamplesOf
    pause_ms: int = 0
    """Tweets may wait for so long until they are in a batch."""

    def __call__(self, totals: DataFrame, batch: int) -> None:
        tags, told_notes = _collected(totals, self.opener)
        with self.outlet.turn:
            feed_note = self.outlet.last_note(query_of(totals))
            assert feed_note is not None, "the query is given"
            if batch < feed_note.batch or (
                batch == feed_note.batch and feed_note.letters_to is None
            ):
                return
            strays = sorted(
                (one for note in told_notes for one in note.strays),
                key=lambda one: one.offset,
            )
            self.outlet.put_letters(feed_note, batch, self.letters(strays))
            self._tell(feed_note, batch, tags, told_notes)

    def idle(self) -> None:
        """Tell windows that are over because nothing more has come."""
        self._close(time.time_ns() // 1_000_000 - IDLE_MS - self.pause_ms)

    def end(self) -> None:
        """Tell all windows: nothing more comes."""
        self._close(1 << 62)

    def _tell(
        self,
        feed_note: FeedNote,
        batch: int,
        tags: list[tuple[str, str]],
        of: list[PortionNote],
    ) -> None:
        windows = feed_note.windows
        added(windows, (note.windows for note in of))
        samples = self._panics(feed_note)
        events = [*_tags(tags), *statistics(closed(windows, windows.reached_ms))]
        note = FeedNote(batch=batch, windows=windows, samples=samples)
        self.outlet.put(events, note)

    def _panics(self, feed_note: FeedNote) -> int:
        """Count those up to the last tweet; later ones wait for the next."""
        samples, panics = self.samples(feed_note.samples, feed_note.windows.end_ms)
        for at_ms, count in panics:
            feed_note.windows.panic(at_ms, count)
        return samples

    def _close(self, to_ms: int) -> None:
        with self.outlet.turn:
            feed_note = self.outlet.last_note()
            if (
                feed_note is None
                or not feed_note.windows.open
                or feed_note.letters_to is not None
            ):
                return
            samples = self._panics(feed_note)
            events = statistics(closed(feed_note.windows, to_ms))
            if events:
                note = msgspec.structs.replace(feed_note, samples=samples)
                self.outlet.put(events, note)


def _collected(
    totals: DataFrame, opener: Opener
) -> tuple[list[tuple[str, str]], list[PortionNote]]:
    """Write totals of users; tags and their counts, and the notes. One job of Spark."""
    for_driver = arrow_udf(Totals(opener).run, FOR_DRIVER)  # type: ignore[call-overload]
    done = totals.select(for_driver.asNondeterministic()(*COLUMNS).alias("told"))
    rows = done.where(col("told").isNotNull()).select(inline("told")).collect()
    tags = sorted((row["key"], row["told"]) for row in rows if row["kind"] == TAG)
    return tags, [notes.decode(row["told"]) for row in rows if row["kind"] == NOTE]


def _tags(tags: list[tuple[str, str]]) -> Iterator[FeedEvents]:
    """Counts of tags; the key of an event is the tag."""
    if tags:
        payloads = [payload.encode() for _, payload in tags]
        yield FeedEvents(HASHTAGS, payloads, [tag.encode() for tag, _ in tags])


def statistics(found: dict[str, list[bytes]]) -> list[FeedEvents]:
    """People see the text of a statistic, and its numbers behind it."""
    return [
        FeedEvents(topic, payloads, headers=[_SHOWN] * len(payloads))
        for topic, payloads in found.items()
    ]


def query_of(frame: DataFrame) -> str:
    """The id of the query that a batch is of: that of its checkpoint."""
    context = frame.sparkSession.sparkContext
    query = context.getLocalProperty("sql.streaming.queryId")
    assert query is not None, "Spark tells it in the thread that runs the batch"
    return query
