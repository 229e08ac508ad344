"""A tweet and all of its scores, as one JSON document."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, struct, to_json

# A score that is not there is null, not missing.
AS_IT_IS = {"ignoreNullFields": "false"}
_PARSED = (
    *("id_str", "text", "created_at", "lang", "favorite_count", "retweet_count"),
    *("hashtags", "retweeted_id", "user"),
)


def documents(tweets: DataFrame) -> DataFrame:
    """The tweets with a column ``document``.

    They have been through ``sentiment``, ``vader`` and ``engagement``.
    """
    return tweets.withColumn("document", to_json(document(), AS_IT_IS))


def document() -> Column:
    return struct(
        col("id_str").alias("tw_id"),
        col("text"),
        col("is_retweet"),
        col("user.id_str").alias("user_id"),
        col("user.screen_name").alias("screen_name"),
        col("created_at"),
        struct(
            col("text").alias("tweet_text"),
            col("words").alias("tweet_words"),
            col("word_values").alias("words_emotion_values"),
        ).alias("sentiments_data"),
        col("sentiment").alias("sentiments_score"),
        col("vader").alias("vader_score"),
        struct(
            col("favorite_count"),
            col("retweet_count"),
            col("user.followers_count").alias("followers_count"),
        ).alias("engagement_data"),
        col("engagement").alias("engagement_score"),
        col("hashtags"),
        col("at_ms"),
        struct(*(col(name) for name in _PARSED)).alias("original_tweet"),
    )
