from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as spark

from penstock.spark.columns import arrow_schema, arrow_type


def test_times_are_microseconds_of_utc() -> None:
    assert arrow_type(spark.TimestampType()) == pa.timestamp("us", "UTC")


def test_text_is_not_large() -> None:
    assert arrow_type(spark.StringType()) == pa.string()
    assert arrow_type(spark.BinaryType()) == pa.binary()


def test_not_null_is_kept() -> None:
    schema = spark.StructType([spark.StructField("a", spark.LongType(), False)])

    assert arrow_schema(schema) == pa.schema([pa.field("a", pa.int64(), False)])
