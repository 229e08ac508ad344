"""What the pipeline has made, from plain PySpark: its topics, and its store."""

from __future__ import annotations

import argparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import avg, col, count, max_by, round

from penstock.spark import session
from penstock.store import store


def main(spark: SparkSession, servers: str, url: str) -> None:
    # A topic of JSON, its fields as columns.
    wanted = "message STRUCT<tweet: STRUCT<lang: STRING>>"
    tweets = topic(spark, servers, "firehose", valueSchema=wanted)
    langs = tweets.groupBy(col("message.tweet.lang").alias("lang")).count()
    for lang, many in langs.dropna().orderBy(col("count").desc(), "lang").take(3):
        print(f"{many} tweets in {lang}")

    # A topic of running totals: of each tag the last one counts.
    counts = topic(
        spark, servers, "hashtag_stats", valueSchema="tag STRING, count BIGINT"
    )
    last = counts.groupBy("tag").agg(max_by("count", "offset").alias("count"))
    for tag, many in last.orderBy(col("count").desc(), "tag").take(3):
        print(f"#{tag} {many} times")

    # Documents of the store, joined with each other.
    scored = documents(spark, url, "tweets", "user_id", "sentiments_score")
    users = documents(spark, url, "users_engagements", "id_str", "screen_name", "count")
    mood = scored.groupBy(col("user_id").alias("id_str")).agg(
        round(avg("sentiments_score"), 2).alias("mood"), count("*").alias("tweets")
    )
    busiest = users.join(mood, "id_str").orderBy(col("count").desc(), "id_str")
    for row in busiest.take(3):
        print(f"{row.screen_name}: {row.tweets} tweets, mood {row.mood}")


def topic(spark: SparkSession, servers: str, name: str, **more: str) -> DataFrame:
    reader = spark.read.format("penstock").options(servers=servers, subscribe=name)
    return reader.options(**more).load()


def documents(spark: SparkSession, url: str, name: str, *fields: str) -> DataFrame:
    with store.open(url) as opened:
        rows = [[doc[field] for field in fields] for _, _, doc in opened.read(name)]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return spark.createDataFrame(pa.table(columns, list(fields)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default="127.0.0.1:8410")
    parser.add_argument("--store", required=True)
    given = parser.parse_args()
    main(session(), given.server, given.store)
