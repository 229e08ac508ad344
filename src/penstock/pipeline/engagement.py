"""Engagement: likes and retweets of a tweet, for each follower of its user."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, lit, when


def engagement(tweets: DataFrame) -> DataFrame:
    """The tweets with a column ``engagement``.

    It is (favorite_count + retweet_count) / followers_count, by 1 for a user whom
    nobody follows. Counts that are missing are 0.
    """
    followers = _count("user.followers_count")
    sum_ = _count("favorite_count") + _count("retweet_count")
    return tweets.withColumn(
        "engagement", sum_ / when(followers == 0, 1).otherwise(followers)
    )


def _count(name: str) -> Column:
    """As a float: a sum of counts may be more than an integer can hold."""
    return coalesce(col(name), lit(0)).cast("double")
