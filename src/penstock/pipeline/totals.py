"""What is done with the totals of a batch, by the task that has Spark's state of them.

Totals of users become documents of the store. What only the driver can tell topics goes
on to it: counts of tags, and the notes of the tasks in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from penstock.pipeline.documents import ENGAGEMENTS
from penstock.pipeline.portion import Row
from penstock.pipeline.task import NOTE, TAG, USER, LastTweet
from penstock.pipeline.writing import Opener, write

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
            told = [list(_for_driver(rows)), *([None] * (len(rows) - 1))]
            yield pa.array(told if rows else [], _FOR_DRIVER)


def _engagement(row: dict[str, Any]) -> Row:
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
            told = _encode({"tag": row["key"], "count": row["count"]}).decode()
        elif row["kind"] == NOTE:
            told = row["last"]["told"]
        else:
            continue
        yield {"kind": row["kind"], "key": row["key"], "told": told}


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LastTweet).decode
