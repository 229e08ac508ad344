"""What a batch changes in the store: for every key the newest document, once.

A tweet that was retweeted a hundred times in a batch is written once, as it came last.
So no two tasks write the same document, and none waits for another.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, col, count, inline, lit, max_by, struct

TWEETS = "tweets"
USERS = "users"


def changes(tweets: DataFrame) -> DataFrame:
    """Rows of ``collection``, ``key``, ``version``, ``doc``, and how many ``events``.

    ``tweets`` have been through ``documents`` and ``users``. The tweet that came is
    newer than those inside of it. ``events`` are the tweets that a row stands for.
    """
    both = array(
        _change(TWEETS, "id_str", "document"),
        _change(USERS, "user.id_str", "user_document"),
    )
    rows = tweets.select("version", "position", inline(both))
    age = struct("version", -col("position"))
    newest = max_by(struct("version", "doc"), age).alias("newest")
    return (
        rows.groupBy("collection", "key")
        .agg(newest, count("*").alias("events"))
        .select("collection", "key", "newest.version", "newest.doc", "events")
    )


def _change(collection: str, key: str, document: str) -> Column:
    return struct(
        lit(collection).alias("collection"),
        col(key).alias("key"),
        col(document).alias("doc"),
    )
