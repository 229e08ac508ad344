"""The columns of a topic in Spark's types, and which of them a query wants."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Sequence

import pyarrow as pa
from pyspark.sql import types as spark
from pyspark.sql.pandas import types as conversion

from penstock.errors import InvalidOption
from penstock.model.event import FIELDS as EVENT
from penstock.model.event import Kind
from penstock.spark.ddl import relaxed
from penstock.table.columns import QueryColumns
from penstock.table.naming import CORRUPT, NEVER_NULL, everything

# Spark 4.3 asks for the zone, those before say that it is UTC by themselves.
_ZONE = "timezone" in inspect.signature(conversion.to_arrow_schema).parameters


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """What record batches of that schema have to look like."""
    if _ZONE:
        return conversion.to_arrow_schema(schema, timezone="UTC")
    return conversion.to_arrow_schema(schema)


def arrow_type(kind: spark.DataType) -> pa.DataType:
    return arrow_schema(spark.StructType([spark.StructField("x", kind)])).field(0).type


_HEADER = spark.StructType(
    [
        spark.StructField("key", spark.StringType()),
        spark.StructField("value", spark.BinaryType()),
    ]
)
_KINDS: dict[Kind, spark.DataType] = {
    "bytes": spark.BinaryType(),
    "text": spark.StringType(),
    "offset": spark.LongType(),
    "time": spark.TimestampType(),
    "map": spark.ArrayType(_HEADER),
    "level": spark.IntegerType(),
}
FIELDS: dict[str, spark.DataType] = {
    **{one.table: _KINDS[one.kind] for one in EVENT},
    # Of Spark's Kafka source; 0 everywhere.
    "partition": spark.IntegerType(),
    "timestampType": spark.IntegerType(),
}


def schema_of(
    typed: spark.StructType | None,
    chosen: Sequence[str] | None,
    *,
    include_headers: bool,
) -> spark.StructType:
    """The schema of a table; raises InvalidOption for a column that there is not.

    A payload that is decoded is not given as it is as well, unless it is chosen.
    """
    columns = everything(_names(typed), include_headers=include_headers)
    if chosen is None:
        chosen = [name for name in columns if typed is None or columns[name] != "value"]
    for name in chosen:
        if name not in columns:
            raise InvalidOption("columns", name, _one_of(name, columns))
    types = {} if typed is None else {one.name: one.dataType for one in typed.fields}
    return spark.StructType(
        [spark.StructField(name, _type(name, columns[name], types)) for name in chosen]
    )


def layout_of(schema: spark.StructType, typed: spark.StructType | None) -> QueryColumns:
    """How to make a schema that was given; raises InvalidOption if it cannot be."""
    columns = everything(_names(typed), include_headers=True)
    types = {} if typed is None else {one.name: one.dataType for one in typed.fields}
    for field in schema.fields:
        if field.name not in columns:
            limit = _one_of(field.name, columns)
            raise InvalidOption("schema", field.name, limit)
        wanted = _type(field.name, columns[field.name], types)
        shown = f"{field.name} {field.dataType.simpleString()}"
        if relaxed(field.dataType) != wanted:
            raise InvalidOption("schema", shown, wanted.simpleString())
        if field.dataType != wanted or not _may_be(field, columns[field.name]):
            limit = "without NOT NULL: there may be nulls, which Spark does not survive"
            raise InvalidOption("schema", f"{shown} NOT NULL", limit)
    own = tuple(columns[field.name] for field in schema.fields)
    fields = None if typed is None else arrow_schema(typed)
    return QueryColumns(arrow_schema(schema), own, fields)


def _names(typed: spark.StructType | None) -> list[str]:
    return [] if typed is None else typed.fieldNames()


def _type(
    name: str, own: str | None, types: dict[str, spark.DataType]
) -> spark.DataType:
    if own is None:
        return types[name]
    return spark.BinaryType() if own == CORRUPT else FIELDS[own]


def _may_be(field: spark.StructField, own: str | None) -> bool:
    """Whether a column can be as null, or not, as a schema says."""
    return field.nullable or own in NEVER_NULL


def _one_of(name: str, columns: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(columns), 1, 0.6)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"one of {', '.join(columns)}{hint}"
