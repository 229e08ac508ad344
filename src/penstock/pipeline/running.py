"""Engagement of every user over all of his tweets, also those that were retweeted.

A stateful aggregation: its state is one row for each user, and is
never dropped: what bounds it is the number of users. It lies on disk (RocksDB).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, lit, max, struct, sum, to_json

from penstock.pipeline.documents import AS_IT_IS

COLLECTION = "users_engagements"


def running(tweets: DataFrame) -> DataFrame:
    """A row for each user: ``key``, ``version``, ``count``, ``sum``, ``avg``, ``last``.

    ``tweets`` have been through ``engagement``. The version is that of the last tweet,
    and all values are totals: whoever writes an old row again changes nothing.
    """
    last = max(
        struct(
            col("version"),
            (-col("position")).alias("order"),
            col("engagement").alias("score"),
            col("id_str").alias("tweet_id"),
            col("user.screen_name").alias("screen_name"),
        )
    )
    totals = tweets.groupBy(col("user.id_str").alias("key")).agg(
        count("*").alias("count"), sum("engagement").alias("sum"), last.alias("last")
    )
    return totals.select(
        "key",
        col("last.version").alias("version"),
        "count",
        "sum",
        (col("sum") / col("count")).alias("avg"),
        "last",
    )


def changes(totals: DataFrame) -> DataFrame:
    """The rows as documents of the store, in the columns of ``changes``."""
    document = struct(
        col("key").alias("id_str"),
        col("last.screen_name").alias("screen_name"),
        col("count"),
        col("sum"),
        col("avg"),
        col("last.score").alias("last_score"),
        col("last.tweet_id").alias("last_tweet_id"),
    )
    return totals.select(
        lit(COLLECTION).alias("collection"),
        "key",
        "version",
        to_json(document, AS_IT_IS).alias("doc"),
        lit(1).cast("bigint").alias("events"),
    )
