"""A topic as a table: counted by SQL, narrowed by offset and by time."""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import penstock
from penstock.spark import session


def main(spark: SparkSession) -> None:
    with tempfile.TemporaryDirectory() as directory:
        with penstock.open(directory) as broker:
            cities = [b"Bonn", b"Graz", b"Lyon", b"Bonn", b"Bonn", b"Lyon"]
            for number, city in enumerate(cities):
                broker.publish("visits", b"visitor %d" % number, key=city)
        # Nobody serves the directory now: its files are read as they are.
        visits = spark.read.format("penstock").load(directory, subscribe="visits")
        print(", ".join(visits.columns))

        visits.createOrReplaceTempView("visits")
        rows = spark.sql(
            "SELECT CAST(key AS STRING) AS city, count(*) AS visits FROM visits"
            " GROUP BY key ORDER BY visits DESC, city"
        )
        for city, count in rows.collect():
            print(city, count)

        # Neither the first four events nor their columns are read for this.
        late = spark.read.format("penstock").load(
            directory, subscribe="visits", columns="offset,value"
        )
        for offset, value in late.where(col("offset") >= 4).collect():
            print(offset, bytes(value).decode())


if __name__ == "__main__":
    main(session())
