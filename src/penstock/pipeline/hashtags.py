"""How often every hashtag was used since the beginning.

A stateful aggregation without a watermark: its state grows with the number of tags.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, explode


def hashtags(tweets: DataFrame) -> DataFrame:
    """Rows of ``tag`` and ``count``.

    A tag counts each time that it stands in a tweet, but only in tweets that came, not
    in those inside of them: these have been counted when they came.
    """
    tags = tweets.where(col("position") == 0).select(explode("hashtags").alias("tag"))
    return tags.where(col("tag").isNotNull()).groupBy("tag").count()
