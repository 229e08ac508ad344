"""What the driver does with every batch of the query.

The tasks have written tweets and users by then. Any of it may be cut off by a crash,
and is then done again with the same events: see outlet.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, inline
from pyspark.sql.pandas.functions import arrow_udf

from penstock.client.feed import FeedEvents
from penstock.model.event import MESSAGE_FIELD
from penstock.pipeline import notes
from penstock.pipeline.letters import Letter
from penstock.pipeline.notes import PortionNote
from penstock.pipeline.outlet import FeedNote, QueryFeed
from penstock.pipeline.portion import Stray
from penstock.pipeline.statistics import added, closed
from penstock.pipeline.task import NOTE, TAG
from penstock.pipeline.totals import COLUMNS, FOR_DRIVER, Totals
from penstock.pipeline.writing import Opener

HASHTAGS = "hashtag_stats"
# Of a statistic: which field of it is its message.
_SHOWN = {MESSAGE_FIELD: "text"}
# After this time without a tweet a window is over, though none of a later one has come.
IDLE_MS = 2_000

Samples = Callable[[int, int], tuple[int, list[tuple[int, int]]]]
"""From an offset on up to a time: the next one, and when there were how many panics."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Called by Spark with the totals that a batch has changed, and its number."""

    outlet: QueryFeed
    opener: Opener
    letters: Callable[[Sequence[Stray]], Iterable[Letter]]
    """Reads what the strays are."""
    samples: Samples
    pause_ms: int = 0
    """Tweets may wait for so long until they are in a batch."""

    def __call__(self, totals: DataFrame, batch: int) -> None:
        tags, told_notes = _collected(totals, self.opener)
        with self.outlet.turn:
            told = self.outlet.told(query_of(totals))
            assert told is not None, "the query is given"
            if batch < told.batch or (batch == told.batch and told.letters_to is None):
                return
            strays = sorted(
                (one for note in told_notes for one in note.strays),
                key=lambda one: one.offset,
            )
            self.outlet.put_letters(told, batch, self.letters(strays))
            self._tell(told, batch, tags, told_notes)

    def idle(self) -> None:
        """Tell windows that are over because nothing more has come."""
        self._close(time.time_ns() // 1_000_000 - IDLE_MS - self.pause_ms)

    def end(self) -> None:
        """Tell all windows: nothing more comes."""
        self._close(1 << 62)

    def _tell(
        self,
        told: FeedNote,
        batch: int,
        tags: list[tuple[str, str]],
        of: list[PortionNote],
    ) -> None:
        windows = told.windows
        added(windows, (note.windows for note in of))
        samples = self._panics(told)
        events = [*_tags(tags), *statistics(closed(windows, windows.reached_ms))]
        note = FeedNote(batch=batch, windows=windows, samples=samples)
        self.outlet.put(events, note)

    def _panics(self, told: FeedNote) -> int:
        """Count those up to the last tweet; later ones wait for the next."""
        samples, panics = self.samples(told.samples, told.windows.end_ms)
        for at_ms, count in panics:
            told.windows.panic(at_ms, count)
        return samples

    def _close(self, to_ms: int) -> None:
        with self.outlet.turn:
            told = self.outlet.told()
            if told is None or not told.windows.open or told.letters_to is not None:
                return
            samples = self._panics(told)
            events = statistics(closed(told.windows, to_ms))
            if events:
                note = msgspec.structs.replace(told, samples=samples)
                self.outlet.put(events, note)


def _collected(
    totals: DataFrame, opener: Opener
) -> tuple[list[tuple[str, str]], list[PortionNote]]:
    """Write totals of users; tags and their counts, and the notes. One job of Spark."""
    told = arrow_udf(Totals(opener).run, FOR_DRIVER)  # type: ignore[call-overload]
    done = totals.select(told.asNondeterministic()(*COLUMNS).alias("told"))
    rows = done.where(col("told").isNotNull()).select(inline("told")).collect()
    tags = sorted((row["key"], row["told"]) for row in rows if row["kind"] == TAG)
    return tags, [notes.decode(row["told"]) for row in rows if row["kind"] == NOTE]


def _tags(tags: list[tuple[str, str]]) -> Iterator[FeedEvents]:
    """Counts of tags; the key of an event is the tag."""
    if tags:
        payloads = [told.encode() for _, told in tags]
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
