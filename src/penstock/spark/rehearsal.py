"""A session that does a little of everything, so that Java sees the classes for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from penstock.spark import sessions, sql

ROWS = 10
_QUERIES = (
    "SELECT user, sum(total) AS s, max(timestamp) FROM t GROUP BY user ORDER BY s",
    "SELECT count(*) FROM t x JOIN t y ON x.user = y.user WHERE x.total >= 0",
    "SELECT * FROM t WHERE user LIKE 'u%' LIMIT 3",
    "SELECT *, row_number() OVER (PARTITION BY user ORDER BY total) FROM t",
)


def rehearse(java_options: str, within_s: float) -> str:
    """Run it with a Java of these options, until that has ended; its class path.

    Raises TimeoutExpired.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-rehearsal-") as scratch:
        usual = f"{sessions.STACK} {sessions.LIGHT} {sessions.LOGGING}"
        conf = {
            "spark.driver.extraJavaOptions": f"{usual} {java_options}",
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            **sql.CONF,
        }
        spark = sessions.opened("local[2]", conf, short=True)
        try:
            _everything(spark, Path(scratch))
            assert spark._jvm is not None
            path: str = spark._jvm.java.lang.System.getProperty("java.class.path")
        finally:
            spark.stop()
            _end_java(within_s)
        return path


def _everything(spark: SparkSession, scratch: Path) -> None:
    spark.dataSource.register(Rehearsed)
    frame = sql.readable(spark.read.format(Rehearsed.name()).load())
    frame.createOrReplaceTempView("t")
    for query in _QUERIES:
        asked = spark.sql(query)
        sql.first_rows(sql.shown(asked), ROWS)
        list(sql.rows(asked))
    sql.write_parquet(frame, scratch)


def _end_java(within_s: float) -> None:
    """Spark leaves its Java to end when this process does."""
    gateway = SparkContext._gateway
    assert gateway is not None
    java = gateway.proc
    gateway.shutdown()
    java.stdin.close()
    java.wait(within_s)


class Rehearsed(DataSource):
    """A few rows, read as events are."""

    @classmethod
    def name(cls) -> str:
        return "rehearsed"

    def schema(self) -> str:
        return "user STRING, total BIGINT, value BINARY, timestamp TIMESTAMP"

    def reader(self, schema: StructType) -> RowsReader:
        return RowsReader()


class RowsReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch(
            {
                "user": [f"u{number}" for number in range(ROWS)],
                "total": pa.array(range(ROWS), pa.int64()),
                "value": [b"payload"] * ROWS,
                "timestamp": pa.array([0] * ROWS, pa.timestamp("us", "UTC")),
            }
        )
