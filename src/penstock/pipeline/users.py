"""Who wrote a tweet, as a JSON document."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, to_json

from penstock.pipeline.documents import AS_IT_IS


def users(tweets: DataFrame) -> DataFrame:
    """The tweets with a column ``user_document``: the user as he came with it."""
    return tweets.withColumn("user_document", to_json(col("user"), AS_IT_IS))
