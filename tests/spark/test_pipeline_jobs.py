"""Every formula of the pipeline, on small tables, against values made by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json, lit, octet_length
from pyspark.sql.types import Row

from penstock.pipeline.changes import changes
from penstock.pipeline.documents import documents
from penstock.pipeline.engagement import engagement
from penstock.pipeline.hashtags import hashtags
from penstock.pipeline.parse import (
    DEPTH,
    LONG_ID,
    MAX_TEXT_BYTES,
    NO_RETWEET,
    NO_TWEET,
    TOO_DEEP,
    TOO_LARGE,
    firehose,
    reason,
    tweets,
    unfit,
)
from penstock.pipeline.running import changes as running_changes
from penstock.pipeline.running import running
from penstock.pipeline.sentiment import compound, sentiment, vader
from penstock.pipeline.statistics import statistics
from penstock.pipeline.users import users
from penstock.spark import ddl
from penstock.store.documents import MAX_DOCUMENT_BYTES, MAX_KEY_BYTES

pytestmark = pytest.mark.spark

Json = dict[str, Any]
Sample = tuple[str, float | None, int, float]
BEGIN = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


# Parse


def test_a_retweeted_tweet_is_a_tweet_of_its_own_however_deep_it_lies(
    spark: SparkSession,
) -> None:
    events = [nested(DEPTH), tweet("alone")]

    rows = parsed(spark, events).orderBy("version", "position").collect()

    found = [(row.version, row.position, row.id_str, row.is_retweet) for row in rows]
    assert found == [
        *((0, depth, str(depth), depth > 0) for depth in range(DEPTH + 1)),
        (1, 0, "alone", False),
    ]
    below = [str(depth) for depth in range(1, DEPTH + 1)]
    assert [row.retweeted_id for row in rows] == [*below, None, None]
    assert [row.at_ms for row in rows] == [1000] * (DEPTH + 1) + [1001]
    assert rows[DEPTH].user.id_str == f"user of {DEPTH}"


def test_fields_of_a_tweet_are_columns(spark: SparkSession) -> None:
    tags = {"hashtags": [{"text": "b"}, {"text": "a"}, {"text": "b"}]}

    (row,) = parsed(spark, [tweet("1", text="hi", entities=tags)]).collect()

    assert (row.text, row.hashtags) == ("hi", ["b", "a", "b"])
    assert (row.favorite_count, row.retweet_count) == (2, 1)
    assert row.user.asDict() == {
        "id_str": "u",
        "screen_name": "name of u",
        "name": None,
        "lang": None,
        "location": None,
        "followers_count": 10,
        "friends_count": None,
    }


def test_an_event_that_is_no_tweet_or_fits_no_store_is_unfit_and_no_row(
    spark: SparkSession,
) -> None:
    inside = tweet("2", retweeted_status={"text": "without an id"})
    cases: list[tuple[object, str | None]] = [
        (tweet("1"), None),
        (nested(DEPTH), None),
        ({"text": "nobody's"}, NO_TWEET),
        ({"id_str": "1", "retweeted_status": tweet("2")}, NO_TWEET),
        (None, NO_TWEET),
        (nested(DEPTH + 1), TOO_DEEP),
        (nested(DEPTH + 3), TOO_DEEP),
        (tweet("1", retweeted_status={}), NO_RETWEET),
        (tweet("1", retweeted_status={"id_str": "2"}), NO_RETWEET),
        (tweet("1", retweeted_status=inside), NO_RETWEET),
        (tweet("i" * MAX_KEY_BYTES), None),
        (tweet("i" * (MAX_KEY_BYTES + 1)), LONG_ID),
        (tweet("\0" * 342), LONG_ID),
        (tweet("1", user="ü" * 513), LONG_ID),
        (tweet("1", retweeted_status=tweet("2", user="u" * 2000)), LONG_ID),
        (tweet("1", text="x" * MAX_TEXT_BYTES), TOO_LARGE),
        (tweet("1", retweeted_status=tweet("2", lang="x" * (1 << 20))), TOO_LARGE),
        (tweet("1", entities={"hashtags": [{}] * 70_000}), TOO_LARGE),
    ]
    payloads = [{"message": {"tweet": given}} for given, _ in cases]

    frame = events_of(spark, payloads)

    found = frame.select(reason().alias("why")).collect()
    assert [row.why for row in found] == [why for _, why in cases]
    versions = {row.version for row in tweets(frame).collect()}
    assert versions == {place for place, (_, why) in enumerate(cases) if why is None}


@pytest.mark.parametrize("payload", [{}, {"message": None}, {"message": {"delete": 1}}])
def test_an_event_of_another_kind_is_unfit(spark: SparkSession, payload: Json) -> None:
    assert events_of(spark, [payload]).where(unfit()).count() == 1


def test_the_largest_tweets_fit_the_store(spark: SparkSession) -> None:
    given = [
        tweet("1", text=text * ((MAX_TEXT_BYTES - 100) // len(text)))
        for text in ("\1", "\1 ", "a ", "\1.")
    ]
    tags = {"hashtags": [{"text": "\1"}] * ((MAX_TEXT_BYTES - 100) // 2)}
    given.append(tweet("1", entities=tags))

    # The score is not what makes it large, and takes long.
    scored = sentiment(engagement(parsed(spark, given))).withColumn("vader", lit(0.5))
    rows = documents(scored).select(octet_length("document").alias("size")).collect()

    assert len(rows) == len(given)
    assert max(row.size for row in rows) < MAX_DOCUMENT_BYTES


def test_what_the_source_could_not_decode_is_unfit(spark: SparkSession) -> None:
    frame = events_of(spark, [{"message": {"tweet": tweet("1")}}])

    broken = frame.withColumn("_corrupt", col("offset").cast("string").cast("binary"))

    assert broken.where(unfit()).count() == 1


# Scores


SENTIMENTS: list[tuple[str | None, list[str], list[int], float | None]] = [
    ("good", ["good"], [3], 3.0),
    ("a good day", ["a", "good", "day"], [0, 3, 0], 1.0),
    ("Good good", ["Good", "good"], [0, 3], 1.5),
    ("good, bad.", ["good", "bad"], [3, -3], 0.0),
    ("  win   win  ", ["win", "win"], [4, 4], 4.0),
    ("ha!ha http://x|y;z?", ["haha", "httpxyz"], [3, 0], 1.5),
    ("catastrophic #catastrophic", ["catastrophic", "#catastrophic"], [-4, 0], -2.0),
    ("not good", ["not", "good"], [0, 3], 1.5),  # there is an entry "not good": -2
    ("naïve 😀", ["naïve", "😀"], [-2, 0], -1.0),
    ("good\tbad\nbad", ["good\tbad\nbad"], [0], 0.0),
    ("bad, worse: worst", ["bad", "worse", "worst"], [-3, -3, -3], -3.0),
    ("", [], [], None),
    (" .,?/:;!| ", [], [], None),
    (None, [], [], None),
]


def test_sentiment_is_the_mean_of_the_values_of_words(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(text,) for text, *_ in SENTIMENTS], "text STRING")

    rows = sentiment(frame).collect()

    found = [(row.text, row.words, row.word_values, row.sentiment) for row in rows]
    assert found == SENTIMENTS


def test_vader_gives_the_compound_of_each_text(spark: SparkSession) -> None:
    texts = ["I love it!", "VADER is not smart, handsome, nor funny.", "", None]
    rows = [(text,) for text in texts] * 2

    found = vader(spark.createDataFrame(rows, "text STRING")).collect()

    assert [row.vader for row in found] == [0.6696, -0.7424, 0.0, None] * 2
    assert found[0].vader == compound("I love it!")


# Likes, retweets, followers, and what that is.
ENGAGEMENTS = [
    (2, 1, 10, 0.3),
    (0, 0, 10, 0.0),
    (5, 2, 0, 7.0),
    (1, 1, 1, 2.0),
    (1, 0, 3, 1 / 3),
    (None, 4, 2, 2.0),
    (3, None, None, 3.0),
    ((1 << 63) - 1, (1 << 63) - 1, 0, 2.0**64),
]


def test_engagement_is_likes_and_retweets_for_each_follower(
    spark: SparkSession,
) -> None:
    schema = (
        "favorite_count BIGINT, retweet_count BIGINT,"
        " user STRUCT<followers_count: BIGINT>"
    )
    given = [
        (likes, again, Row(followers_count=many))
        for likes, again, many, _ in ENGAGEMENTS
    ]

    rows = engagement(spark.createDataFrame(given, schema)).collect()

    assert [row.engagement for row in rows] == [score for *_, score in ENGAGEMENTS]


# Documents


def test_a_document_has_the_tweet_and_all_of_its_scores(spark: SparkSession) -> None:
    tags = {"hashtags": [{"text": "sun"}]}
    first = tweet("7", text="good day", entities=tags, lang="en", created_at="today")

    (row,) = documented(spark, [first]).collect()

    user = {
        "id_str": "u",
        "screen_name": "name of u",
        "name": None,
        "lang": None,
        "location": None,
        "followers_count": 10,
        "friends_count": None,
    }
    assert json.loads(row.document) == {
        "tw_id": "7",
        "text": "good day",
        "is_retweet": False,
        "user_id": "u",
        "screen_name": "name of u",
        "created_at": "today",
        "sentiments_data": {
            "tweet_text": "good day",
            "tweet_words": ["good", "day"],
            "words_emotion_values": [3, 0],
        },
        "sentiments_score": 1.5,
        "vader_score": 0.4404,
        "engagement_data": {
            "favorite_count": 2,
            "retweet_count": 1,
            "followers_count": 10,
        },
        "engagement_score": 0.3,
        "hashtags": ["sun"],
        "at_ms": 1000,
        "original_tweet": {
            "id_str": "7",
            "text": "good day",
            "created_at": "today",
            "lang": "en",
            "favorite_count": 2,
            "retweet_count": 1,
            "hashtags": ["sun"],
            "retweeted_id": None,
            "user": user,
        },
    }
    assert json.loads(row.user_document) == user


def test_a_document_without_words_says_null(spark: SparkSession) -> None:
    (row,) = documented(spark, [tweet("7", text="!")]).collect()

    document = json.loads(row.document)
    assert document["sentiments_score"] is None
    assert document["sentiments_data"]["tweet_words"] == []


def test_of_each_document_the_newest_is_written_with_how_often_it_came(
    spark: SparkSession,
) -> None:
    old = tweet("1", user="a", favorite_count=1)
    events = [
        old,
        tweet("2", user="b", retweeted_status={**old, "favorite_count": 5}),
        # He repeats himself: what came is newer than what it holds.
        tweet("3", user="a", retweeted_status=tweet("4", user="a", followers=99)),
    ]

    rows = changes(documented(spark, events)).collect()

    found = {(row.collection, row.key): row for row in rows}
    assert {place: (row.version, row.events) for place, row in found.items()} == {
        ("tweets", "1"): (1, 2),
        ("tweets", "2"): (1, 1),
        ("tweets", "3"): (2, 1),
        ("tweets", "4"): (2, 1),
        ("users", "a"): (2, 4),
        ("users", "b"): (1, 1),
    }
    newest = json.loads(found["tweets", "1"].doc)
    assert newest["engagement_data"]["favorite_count"] == 5
    assert newest["is_retweet"] is True
    assert json.loads(found["users", "a"].doc)["followers_count"] == 10


def test_running_engagement_is_over_every_tweet_of_a_user(spark: SparkSession) -> None:
    own = tweet("1", user="a", favorite_count=4, retweet_count=0)
    events = [
        own,
        tweet("2", user="b", retweeted_status={**own, "favorite_count": 9}),
        tweet("3", user="a", favorite_count=1, retweet_count=0, followers=0),
    ]

    totals = running(engagement(parsed(spark, events)))
    rows = running_changes(totals).orderBy("key").collect()

    first, second = (json.loads(row.doc) for row in rows)
    assert [(row.collection, row.key, row.version) for row in rows] == [
        ("users_engagements", "a", 2),
        ("users_engagements", "b", 1),
    ]
    assert first.pop("sum") == pytest.approx(0.4 + 0.9 + 1.0)
    assert first.pop("avg") == pytest.approx((0.4 + 0.9 + 1.0) / 3)
    assert first == {
        "id_str": "a",
        "screen_name": "name of a",
        "count": 3,
        "last_score": 1.0,
        "last_tweet_id": "3",
    }
    assert (second["count"], second["last_tweet_id"]) == (1, "2")


def test_a_tag_counts_each_time_in_a_tweet_but_not_again_in_retweets(
    spark: SparkSession,
) -> None:
    def tagged(id: str, *tags: str, **more: Any) -> Json:
        entities = {"hashtags": [{"text": tag} for tag in tags]}
        return tweet(id, entities=entities, **more)

    events = [
        tagged("1", "sun", "sea", "sun"),
        tagged("2", "sun", retweeted_status=tagged("9", "sea", "Sun")),
        tagged("3"),
        tweet("4", entities=None),
    ]

    rows = hashtags(parsed(spark, events)).collect()

    assert {row["tag"]: row["count"] for row in rows} == {"sun": 3, "sea": 1}


# Statistics


PERCENTILES = [
    ([1.23456], (1.23456, 1.23456, 1.23456)),
    ([1.1, 1.1], (1.1, 1.1, 1.1)),
    ([10.0, 20.0], (17.5, 18.5, 19.5)),
    ([40.0, 10.0, 30.0, 20.0], (32.5, 35.5, 38.5)),
    ([0.001, 0.002, 0.003], (0.01, 0.01, 0.01)),
    ([100.0, 200.0, 301.003], (250.51, 270.71, 290.91)),
    ([float(n) for n in range(101)], (75.0, 85.0, 95.0)),
]


def test_percentiles_are_interpolated_and_rounded_up(spark: SparkSession) -> None:
    samples: list[Sample] = [
        ("tweets", ms, 10, 5.0 * place)
        for place, (times, _) in enumerate(PERCENTILES)
        for ms in times
    ]

    found = told(spark, samples)

    assert {topic for topic, _ in found} == {"tweets_stats"}
    expected = [percentiles for _, percentiles in PERCENTILES]
    assert [(one["p75"], one["p85"], one["p95"]) for _, one in found] == expected
    assert expected == [
        tuple(defined(times, n) for n in (75, 85, 95)) for times, _ in PERCENTILES
    ]


def test_every_window_tells_its_own_totals(spark: SparkSession) -> None:
    samples: list[Sample] = [
        ("processing", 12.5, 40, 0.0),
        ("panics", None, 2, 1.0),
        ("panics", None, 3, 4.999),
        ("tweets", 3.5, 30, 2.0),
        ("tweets", 4.5, 10, 2.0),
        ("users", 1.25, 20, 2.0),
        ("users_engagements", 1.25, 20, 2.0),
        ("tick", None, 0, 3.0),
        ("tweets", 7.5, 1, 5.0),
        ("panics", None, 1, 10.0),
    ]

    found = told(spark, samples)

    at = int(BEGIN.timestamp() * 1000)
    assert [
        (topic, value["kind"], (value["window_start_ms"] - at) // 1000)
        for topic, value in found
    ] == [
        ("logger_stats", "processing", 0),
        ("logger_stats", "processing", 10),
        ("tweets_stats", "tweets", 0),
        ("tweets_stats", "tweets", 5),
        ("users_stats", "users", 0),
    ]
    values = [value for _, value in found]
    assert all(one["window_end_ms"] - one["window_start_ms"] == 5000 for one in values)
    assert [one.get("crashes") for one in values] == [5, 1, None, None, None]
    assert [one.get("processed") for one in values] == [None, None, 40, 1, 20]
    logger = "[StatisticWorker spark - LoggerWorker execution time] Percentile stats "
    bulk = "[StatisticWorker spark - Bulk `%s` insert stats] Execution time percentile "
    assert [one["text"] for one in values] == [
        logger + "75%=12.5 | 85%=12.5 | 95%=12.5 [5 CRASHES/5sec]",
        logger + "75%=- | 85%=- | 95%=- [1 CRASHES/5sec]",
        bulk % "tweets" + "75%=4.25 | 85%=4.35 | 95%=4.45 [processed=40]",
        bulk % "tweets" + "75%=7.5 | 85%=7.5 | 95%=7.5 [processed=1]",
        bulk % "users" + "75%=1.25 | 85%=1.25 | 95%=1.25 [processed=20]",
    ]


def told(spark: SparkSession, samples: list[Sample]) -> list[tuple[str, Json]]:
    """Topics and values of the statistics of samples, the last column in seconds."""
    rows = [
        (kind, ms, count, BEGIN + timedelta(seconds=at))
        for kind, ms, count, at in samples
    ]
    schema = "kind STRING, ms DOUBLE, count BIGINT, timestamp TIMESTAMP"
    found = statistics(spark.createDataFrame(rows, schema)).collect()
    told = [(row.topic, json.loads(row.value)) for row in found]
    return sorted(told, key=lambda one: (one[0], one[1]["window_start_ms"]))


def defined(times: list[float], n: int) -> float:
    """The percentile as it is defined: linear at n/100 of len - 1, rounded up."""
    if len(times) == 1:
        return times[0]
    exact = sorted(Decimal(str(one)) for one in times)
    rank = Decimal(n) / 100 * (len(exact) - 1)
    low = int(rank)
    high = min(low + 1, len(exact) - 1)
    value = exact[low] + (exact[high] - exact[low]) * (rank - low)
    return float(value.quantize(Decimal("0.01"), ROUND_CEILING))


def tweet(id: str, *, user: str = "u", followers: int = 10, **more: Any) -> Json:
    """A tweet of Twitter's API; what is given replaces what is usual."""
    return {
        "id_str": id,
        "text": f"text of {id}",
        "favorite_count": 2,
        "retweet_count": 1,
        "entities": {"hashtags": []},
        "user": {
            "id_str": user,
            "screen_name": f"name of {user}",
            "followers_count": followers,
        },
        **more,
    }


def nested(levels: int) -> Json:
    """A tweet with so many below it; each has its depth as id."""
    found = tweet(str(levels), user=f"user of {levels}")
    for depth in reversed(range(levels)):
        user = f"user of {depth}"
        found = tweet(str(depth), user=user, retweeted_status=found)
    return found


def events_of(spark: SparkSession, payloads: list[Json]) -> DataFrame:
    """What the source makes of such payloads."""
    rows = [(json.dumps(one), place) for place, one in enumerate(payloads)]
    frame = spark.createDataFrame(rows, "value STRING, offset BIGINT")
    message = from_json("value", ddl.parse(firehose())).message
    nothing = lit(None).cast("binary")
    made = frame.select(message.alias("message"), "offset", nothing.alias("_corrupt"))
    # As rows that are there: Spark would decode them for every use of a field.
    return spark.createDataFrame(made.collect(), made.schema)


def parsed(spark: SparkSession, found: list[Json]) -> DataFrame:
    """Tweets that come at offsets 0, 1 and so on, a millisecond apart."""
    payloads = [
        {"message": {"tweet": one, "unix_timestamp_100us": 10_000 + 10 * place}}
        for place, one in enumerate(found)
    ]
    return tweets(events_of(spark, payloads))


def documented(spark: SparkSession, found: list[Json]) -> DataFrame:
    scored = vader(sentiment(engagement(parsed(spark, found))))
    return users(documents(scored))
