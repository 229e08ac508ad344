"""Arrow's types for Spark's, exactly as Spark wants them back."""

from __future__ import annotations

import inspect

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas import types as conversion

# Spark 4.3 asks for the zone, those before say that it is UTC by themselves.
_ZONE = "timezone" in inspect.signature(conversion.to_arrow_schema).parameters


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """What record batches of that schema have to look like."""
    if _ZONE:
        return conversion.to_arrow_schema(schema, timezone="UTC")
    return conversion.to_arrow_schema(schema)


def arrow_type(kind: spark.DataType) -> pa.DataType:
    return arrow_schema(spark.StructType([spark.StructField("x", kind)])).field(0).type
