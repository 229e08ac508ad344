"""The firehose as tweets: one row for each, also for those inside of others.

A payload is ``{"message": {"tweet": {…}, "unix_timestamp_100us": 17}}``. Its fields are
decoded by the source (option ``valueSchema``); a ``retweeted_status`` is a tweet of
its own, and so is one inside of that.

An event is taken whole or not at all. What has no place in a store is ``unfit``: every
document that is made of the rest is within the limits of stores, so none of them stops
the pipeline.

What is done with each element of an array is written in SQL: a lambda of Python gets a
new name for its argument each time, and Spark would compile every batch anew.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_compact,
    call_function,
    col,
    expr,
    get,
    inline_outer,
    lit,
    struct,
    when,
)

from penstock.store.documents import MAX_KEY_BYTES, REPLACEMENT

# Levels of retweets below a tweet: Twitter has one. Each makes the plans of all queries
# larger, and they are worked through for every tweet.
DEPTH = 2
# Text of one tweet and its user. A text is four times in its document, and a byte of it
# becomes six if it has to be escaped: 24 times this is within the limit of documents.
MAX_TEXT_BYTES = 256 << 10
UNFIT = "it does not fit the schema of tweets"
NO_TWEET = "it holds no tweet with an id and a user"
TOO_DEEP = f"it holds retweets deeper than {DEPTH} levels"
NO_RETWEET = "it holds a retweeted tweet without an id or a user"
LONG_ID = f"it holds an id of more than {MAX_KEY_BYTES} bytes"
TOO_LARGE = f"it holds a tweet with more than {MAX_TEXT_BYTES} bytes of text"
USER = (
    "id_str: STRING, screen_name: STRING, name: STRING, lang: STRING, "
    "location: STRING, followers_count: BIGINT, friends_count: BIGINT"
)
TWEET = (
    "id_str: STRING, text: STRING, created_at: STRING, lang: STRING, "
    "favorite_count: BIGINT, retweet_count: BIGINT, "
    "entities: STRUCT<hashtags: ARRAY<STRUCT<text: STRING>>>, "
    f"user: STRUCT<{USER}>"
)
_TEXTS = ("text", "created_at", "lang")
_USER_TEXTS = ("screen_name", "name", "lang", "location")


def _nameless(tweet: str) -> str:
    return f"({tweet}.id_str IS NULL OR {tweet}.user.id_str IS NULL)"


def _key_bytes(key: str) -> str:
    """What a key has as the store writes it."""
    return f"octet_length(replace({key}, '\\0', '{REPLACEMENT}'))"


_SIZES = " + ".join(
    f"coalesce(octet_length({text}), 0)"
    for text in (
        *(f"tweet.{name}" for name in _TEXTS),
        *(f"tweet.user.{name}" for name in _USER_TEXTS),
        "array_join(tweet.tags, ',', 'null')",
    )
)
# Of a tweet, or null.
_WHY = f"""
CASE
  WHEN tweet IS NULL THEN NULL
  WHEN {_nameless("tweet")} THEN '{NO_RETWEET}'
  WHEN {_key_bytes("tweet.id_str")} > {MAX_KEY_BYTES} THEN '{LONG_ID}'
  WHEN {_key_bytes("tweet.user.id_str")} > {MAX_KEY_BYTES} THEN '{LONG_ID}'
  WHEN {_SIZES} > {MAX_TEXT_BYTES} THEN '{TOO_LARGE}'
END
"""


def firehose(depth: int = DEPTH) -> str:
    """The option ``valueSchema`` of the firehose.

    Of what is deeper than that it can be seen that it is there.
    """
    tweet = "id_str: STRING"
    for _ in range(depth + 1):
        tweet = f"{TWEET}, retweeted_status: STRUCT<{tweet}>"
    return f"message STRUCT<tweet: STRUCT<{tweet}>, unix_timestamp_100us: BIGINT>"


def tweets(events: DataFrame) -> DataFrame:
    """A row for each tweet: its fields, where it was and whether it was retweeted.

    ``events`` has the columns ``message``, ``offset`` and ``_corrupt``. ``version`` is
    the offset, ``position`` the depth at which the tweet was found: 0 is the one that
    came. Nothing of an event that is ``unfit`` is a row.
    """
    levels = array(*(_tweet(place, depth) for depth, place in enumerate(_places())))
    there = expr("tweet -> tweet.id_str IS NOT NULL")
    found = call_function("filter", levels, there)
    taken = inline_outer(when(~unfit(), found))
    at_ms = (col("message.unix_timestamp_100us") / 10).cast("bigint")
    rows = events.select(col("offset").alias("version"), at_ms.alias("at_ms"), taken)
    # Not a filter in front: Spark would derive others from it, and from what they
    # come to, which takes minutes for an expression of this size.
    rows = rows.where(col("position").isNotNull())
    return rows.withColumn("is_retweet", col("position") > 0)


def unfit() -> Column:
    """Whether an event of the firehose is not taken.

    Of the columns ``_corrupt`` and ``message``.
    """
    return reason().isNotNull()


def reason() -> Column:
    """Why an event is ``unfit``; null if it is not."""
    top, *_, deepest = _places()
    levels = array(*(_outline(place) for place in _places()))
    # One function for all levels: Spark plans every batch anew, and what is written
    # out for each of them takes it seconds.
    whys = array_compact(call_function("transform", levels, expr(f"tweet -> {_WHY}")))
    return (
        when(col("_corrupt").isNotNull(), UNFIT)
        .when(expr(_nameless(top)), NO_TWEET)
        .when(col(f"{deepest}.retweeted_status").isNotNull(), TOO_DEEP)
        .otherwise(get(whys, lit(0)))
    )


def _places() -> list[str]:
    """Where tweets are: the one that came, and those inside of it."""
    return ["message.tweet" + ".retweeted_status" * depth for depth in range(DEPTH + 1)]


def _outline(place: str) -> Column:
    """What says whether a tweet fits; null where there is none."""
    whole = struct(
        *(col(f"{place}.{name}").alias(name) for name in ("id_str", *_TEXTS, "user")),
        col(f"{place}.entities.hashtags.text").alias("tags"),
    )
    return when(col(place).isNotNull(), whole)


def _tweet(place: str, depth: int) -> Column:
    return struct(
        lit(depth).alias("position"),
        *(
            col(f"{place}.{name}").alias(name)
            for name in ("id_str", "text", "created_at", "lang")
        ),
        col(f"{place}.favorite_count").alias("favorite_count"),
        col(f"{place}.retweet_count").alias("retweet_count"),
        col(f"{place}.entities.hashtags.text").alias("hashtags"),
        col(f"{place}.retweeted_status.id_str").alias("retweeted_id"),
        col(f"{place}.user").alias("user"),
    )
