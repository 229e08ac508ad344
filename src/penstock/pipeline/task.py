"""What a task of Spark does with its part of the firehose.

Decode, keep the newest of each id, score, write to the store; then tell what is summed
up over all tasks and batches, and a note for the driver. Spark may run a task twice, or
again after a crash: documents carry the offset as version, and an old or equal version
changes nothing.

As a function of Arrow arrays with a row of output for every row of input, because
``mapInArrow`` would want pandas: all that is told stands in the first row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from penstock.pipeline.documents import TWEETS, USERS
from penstock.pipeline.notes import note_of
from penstock.pipeline.portion import Engaged, TweetPortion, portion
from penstock.pipeline.writing import Opener, write

# Kinds of what is told. Sums of users and tags are Spark's state for ever; of each part
# of a batch the state holds the last note.
USER, TAG, NOTE = "user", "tag", "note"
LAST = "STRUCT<version: BIGINT, rank: INT, told: STRING>"
TOLD = (
    "ARRAY<STRUCT<kind: STRING, key: STRING, count: BIGINT, sum: DOUBLE, "
    f"last: {LAST}>>"
)
_LAST = pa.struct(
    [("version", pa.int64()), ("rank", pa.int32()), ("told", pa.string())]
)
_ROW = pa.struct(
    [
        ("kind", pa.string()),
        ("key", pa.string()),
        ("count", pa.int64()),
        ("sum", pa.float64()),
        ("last", _LAST),
    ]
)

Last = tuple[int, int, str]
Sum = tuple[str, str, int, float, Last | None]
"""Kind, key, count, sum, and the last."""


class LastTweet(msgspec.Struct, frozen=True, array_like=True):
    """What is told of the last tweet of a user."""

    score: float
    tweet_id: str
    screen_name: str | None


@dataclass(frozen=True, slots=True)
class Task:
    """``run`` is called by Spark, with the columns value, offset and timestamp."""

    opener: Opener

    def run(self, batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        context = TaskContext.get()
        part = context.partitionId() if context is not None else 0
        for number, (values, offsets, timestamps) in enumerate(batches):
            rows = self.rows_of(f"{part}.{number}", values, offsets, timestamps)
            yield _array(rows, len(values))

    def rows_of(
        self, part: str, values: pa.Array, offsets: pa.Array, timestamps: pa.Array
    ) -> list[Sum]:
        """Write what the events come to; the sums of it, and the note."""
        if not len(values):
            return []
        stored_ms = [us // 1000 for us in timestamps.cast(pa.int64()).to_pylist()]
        found = portion(
            zip(offsets.to_pylist(), stored_ms, values.to_pylist(), strict=True)
        )
        tweets_ms = write(self.opener, TWEETS, found.documents())
        users_ms = write(self.opener, USERS, found.authors())
        note = note_of(found, time.time_ns() // 1_000_000, tweets_ms, users_ms)
        first: int = offsets[0].as_py()
        return [
            *_sums(found),
            (NOTE, part, 1, 0.0, (first, 0, note.encode())),
        ]


def _sums(found: TweetPortion) -> Iterator[Sum]:
    for key, engaged in found.users.items():
        yield USER, key, engaged.count, engaged.sum, _last(engaged)
    for tag, count in found.tags.items():
        yield TAG, tag, count, 0.0, None


def _last(engaged: Engaged) -> Last:
    last = engaged.last
    value = LastTweet(last.engagement, last.tweet.key, last.tweet.author.screen_name)
    return last.version, -last.position, _encode(value).decode()


def _array(rows: Sequence[Sum], length: int) -> pa.Array:
    """All rows told in the first of ``length`` places."""
    columns: list[Any] = list(zip(*rows, strict=True)) or [[]] * 5
    lasts = [_fields(last) for last in columns[4]]
    values = pa.StructArray.from_arrays(
        [
            pa.array(columns[0], pa.string()),
            pa.array(columns[1], pa.string()),
            pa.array(columns[2], pa.int64()),
            pa.array(columns[3], pa.float64()),
            pa.array(lasts, _LAST),
        ],
        fields=list(_ROW),
    )
    ends = [0, *([len(rows)] * length)] if length else [0]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)


def _fields(last: Last | None) -> dict[str, object] | None:
    if last is None:
        return None
    return {"version": last[0], "rank": last[1], "told": last[2]}


_encode = msgspec.json.Encoder().encode
