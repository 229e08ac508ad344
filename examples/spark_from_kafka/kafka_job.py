"""The turnover of each country, and large orders to a topic of their own."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "kafka"
SERVERS = "127.0.0.1:9092"
ORDER = "customer STRING, country STRING, amount DOUBLE"
LARGE = 100.0


def turnover(spark: SparkSession, servers: str = SERVERS) -> DataFrame:
    """Of all orders there are now."""
    orders = (
        spark.read.format(FORMAT)
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    return parsed(orders).groupBy("country").sum("amount").orderBy("country")


def copy_large(
    spark: SparkSession, servers: str = SERVERS, checkpoint: str = "checkpoint"
) -> StreamingQuery:
    """Of all orders that came since the last time, with their key and headers."""
    orders = (
        spark.readStream.format(FORMAT)
        .option("kafka.bootstrap.servers", servers)
        .option("kafka.security.protocol", "PLAINTEXT")
        .option("subscribePattern", "orders")
        .option("startingOffsets", '{"orders": {"0": 0}}')
        .option("maxOffsetsPerTrigger", 10_000)
        .option("includeHeaders", "true")
        .option("failOnDataLoss", "false")
        .load()
    )
    large = parsed(orders).where(col("amount") >= LARGE)
    return (
        large.selectExpr("key", "to_json(struct(customer, amount)) AS value", "headers")
        .writeStream.format(FORMAT)
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "large-orders")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


def parsed(orders: DataFrame) -> DataFrame:
    text = orders["value"].cast("string")
    return orders.withColumn("order", from_json(text, ORDER)).select("*", "order.*")


if __name__ == "__main__":
    session = SparkSession.Builder().appName("orders").getOrCreate()
    turnover(session).show()
    copy_large(session).awaitTermination()
