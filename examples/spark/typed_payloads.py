"""JSON payloads as typed columns; what does not fit is kept, and shown."""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import avg, col, count, window

import penstock
from penstock.spark import session

READING = "sensor STRING, at TIMESTAMP, celsius DOUBLE"
PAYLOADS = [
    b'{"sensor": "cellar", "at": "2026-03-01T10:00:10Z", "celsius": 11.5}',
    b'{"sensor": "attic", "at": "2026-03-01T10:00:20Z", "celsius": 24}',
    b'{"sensor": "cellar", "at": "2026-03-01T10:00:50Z", "celsius": 12.5}',
    b'{"sensor": "cellar", "at": "2026-03-01T10:01:10Z", "celsius": "warm"}',
    b'{"sensor": "attic", "at": "2026-03-01T10:01:20Z", "celsius": 25}',
]


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with penstock.open(directory) as broker:
            broker.publish_many("readings", PAYLOADS)
        readings = spark.read.format("penstock").load(
            directory, subscribe="readings", valueSchema=READING
        )
        good = readings.where(col("_corrupt").isNull())
        minutes = good.groupBy("sensor", window("at", "1 minute")).agg(
            count("*"), avg("celsius")
        )
        for sensor, minute, many, mean in minutes.orderBy("window", "sensor").collect():
            print(f"{minute.start:%M} {sensor}: {many} of {mean:.1f}")
        for offset, text in (
            readings.exceptAll(good).select("offset", "_corrupt").collect()
        ):
            print(f"offset {offset} does not fit: {bytes(text).decode()}")


if __name__ == "__main__":
    main(session())
