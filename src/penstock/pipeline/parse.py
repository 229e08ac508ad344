"""The firehose as tweets: one row for each, also for those inside of others.

A payload is ``{"message": {"tweet": {…}, "unix_timestamp_100us": 17}}``. Its fields are
decoded by the source (option ``valueSchema``); a ``retweeted_status`` is a tweet of
its own, and so is one inside of that.

An event is taken whole or not at all. What has no place in a store is ``unfit``: every
document that is made of the rest is within the limits of stores, so none of them stops
the pipeline.
"""

from __future__ import annotations

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_join,
    coalesce,
    col,
    filter,
    get,
    inline_outer,
    lit,
    octet_length,
    replace,
    struct,
    transform,
    when,
)

from penstock.store.documents import MAX_KEY_BYTES, REPLACEMENT

# Levels of retweets below a tweet.
DEPTH = 3
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
    found = filter(levels, lambda tweet: tweet.id_str.isNotNull())
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
    whys = filter(transform(levels, _why), lambda why: why.isNotNull())
    return (
        when(col("_corrupt").isNotNull(), UNFIT)
        .when(_nameless(col(top)), NO_TWEET)
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


def _why(tweet: Column) -> Column:
    return when(
        tweet.isNotNull(),
        when(_nameless(tweet), NO_RETWEET)
        .when(_is_long(tweet.id_str) | _is_long(tweet.user.id_str), LONG_ID)
        .when(_text_bytes(tweet) > MAX_TEXT_BYTES, TOO_LARGE),
    )


def _nameless(tweet: Column) -> Column:
    return tweet.id_str.isNull() | tweet.user.id_str.isNull()


def _is_long(id: Column) -> Column:
    """Whether a key is too long, as the store writes it."""
    return octet_length(replace(id, lit("\0"), lit(REPLACEMENT))) > MAX_KEY_BYTES


def _text_bytes(tweet: Column) -> Column:
    texts = [tweet[name] for name in _TEXTS]
    texts += [tweet.user[name] for name in _USER_TEXTS]
    texts.append(array_join(tweet.tags, ",", "null"))
    return reduce(add, (coalesce(octet_length(text), lit(0)) for text in texts))


def _tweet(place: str, depth: int) -> Column:
    return struct(
        lit(depth).alias("position"),
        *(
            col(f"{place}.{name}").alias(name)
            for name in ("id_str", "text", "created_at", "lang")
        ),
        col(f"{place}.favorite_count").alias("favorite_count"),
        col(f"{place}.retweet_count").alias("retweet_count"),
        transform(col(f"{place}.entities.hashtags"), lambda tag: tag.text).alias(
            "hashtags"
        ),
        col(f"{place}.retweeted_status.id_str").alias("retweeted_id"),
        col(f"{place}.user").alias("user"),
    )
