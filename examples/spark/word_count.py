"""A stream that counts words and writes the counts to another topic, once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, split

import penstock
from penstock.spark import session

LINES = [b"the tide comes in", b"the tide goes out", b"in and out"]


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as place:
        data, checkpoint = str(Path(place, "data")), str(Path(place, "checkpoint"))
        # The sink needs a broker that runs; this one does, in this process.
        with penstock.open(data) as broker:
            for day in (LINES[:2], LINES[2:]):
                broker.publish_many("lines", day)
                count_what_came(spark, data, checkpoint)
            answer: Any = broker.ask("subscriptions", topic="lines")
            [row] = answer.subscriptions
            print(f"{row.subscriber} has a lag of {row.lag}")
        counts = spark.read.format("penstock").load(data, subscribe="counts")
        for key, value, offset in counts.select("key", "value", "offset").collect():
            if bytes(key) in (b"tide", b"out"):
                print(offset, bytes(key).decode(), bytes(value).decode())


def count_what_came(spark: SparkSession, data: str, checkpoint: str) -> None:
    """Go on where the last call stopped; all counts are written each time."""
    lines = spark.readStream.format("penstock").load(
        data, subscribe="lines", startingOffsets="earliest", progress="word-count"
    )
    words = lines.select(explode(split(col("value").cast("string"), " ")).alias("key"))
    counts = words.groupBy("key").count().orderBy("key")
    writer = counts.select("key", col("count").cast("string").alias("value"))
    query = (
        writer.writeStream.format("penstock")
        .options(path=data, topic="counts", checkpointLocation=checkpoint)
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(session())
