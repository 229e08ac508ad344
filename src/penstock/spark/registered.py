"""The columns that registered schemas promise, as Spark has them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as spark
from pyspark.sql.pandas.types import from_arrow_schema

from penstock.errors import InvalidOption
from penstock.schema import Schema, parsed
from penstock.table import registered


def columns_of(schemas: Mapping[str, str]) -> spark.StructType:
    """All columns of some topics' schemas; raises InvalidOption where they disagree."""
    found: dict[str, tuple[str, spark.StructField]] = {}
    for topic, text in schemas.items():
        for field in of_schema(parsed(text)).fields:
            before, first = found.setdefault(field.name.lower(), (topic, field))
            if first != field:
                limit = f"given as fields: {_said(first)} in {before}"
                limit = f"{limit}, {_said(field)} in {topic}"
                raise InvalidOption("valueSchema", "registered", limit)
    if not found:
        topics = ", ".join(schemas)
        limit = f"given as fields: the schema of {topics} promises none"
        raise InvalidOption("valueSchema", "registered", limit)
    return spark.StructType([field for _, field in found.values()])


def _said(field: spark.StructField) -> str:
    return f"{field.name} is {field.dataType.simpleString()}"


def of_schema(root: Schema) -> spark.StructType:
    """The fields of an object that have one type."""
    return from_arrow_schema(registered.of_schema(root))
