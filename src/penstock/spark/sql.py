"""SQL over topics: every topic that a query names is a view, made when it is named.

Making a view costs a process, so a broker of a thousand topics is not a session of a
thousand views: the query is analysed, and whenever Spark misses a table that is a
topic, its view is made and the query analysed again.

``key`` and ``value`` are text in these views. Where a schema is registered for a topic,
its fields are columns as well.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql.functions import (
    col,
    date_format,
    map_from_entries,
    struct,
    transform,
    transform_keys,
    transform_values,
    when,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StructType,
    TimestampType,
)

from penstock.errors import InvalidQuery
from penstock.schema import parsed
from penstock.spark import archive, register, sessions
from penstock.spark.registered import of_schema
from penstock.table.naming import suggestion, view

SqlTable = DataFrame

_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"
_NAME = re.compile(r"`((?:[^`]|``)*)`")
_OURS = re.compile(r"^penstock\.errors\.\w+: (.+)$", re.MULTILINE)
_STATE = re.compile(r"\s*SQLSTATE: \w+")
# As other commands show times.
_TIME = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
# Statements whose answer is names of tables.
_LISTS = ("ShowTables", "ShowViews")
# Of a session for one query.
CONF = {
    # What is planned while it runs is a job more for each exchange.
    "spark.sql.adaptive.enabled": "false",
    # So is a limit that looks at one partition first: here they are read side by side.
    "spark.sql.limit.initialNumPartitions": str(len(os.sched_getaffinity(0))),
    "spark.sql.session.timeZone": "UTC",
}
# It tells everything twice, as JSON, on standard error.
_LOGGER = "SQLQueryContextLogger"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTopics:
    """What a query can be about, and how to get there."""

    options: Mapping[str, str]
    """Of the source: servers or path, user and password."""
    names: Sequence[str]
    schemas: Mapping[str, str] = field(default_factory=dict)
    """JSON Schema, of the topics that have one."""


@dataclass(frozen=True, slots=True)
class SparkResult:
    """The answer to a query, row by row."""

    frame: DataFrame

    @property
    def columns(self) -> list[str]:
        return list(self.frame.columns)

    def rows(self, most: int | None = None) -> Iterator[Row]:
        """With times as text; raises InvalidQuery."""
        frame = shown(self.frame)
        yield from rows(frame) if most is None else first_rows(frame, most)

    def notes(self) -> list[str]:
        return []


@contextmanager
def opened() -> Iterator[SparkSession]:
    """A session for one query, in UTC; beside the one that runs, if one does."""
    logging.getLogger(_LOGGER).setLevel(logging.CRITICAL)
    before = SparkSession.getActiveSession()
    with tempfile.TemporaryDirectory(prefix="penstock-sql-") as scratch:
        warehouse = {"spark.sql.warehouse.dir": f"{scratch}/warehouse"}
        if before is None:
            spark = sessions.opened("local[*]", warehouse | CONF, short=True)
        else:
            spark = _beside(before, CONF)
        try:
            yield spark
        finally:
            if before is None:
                spark.stop()
                with suppress(OSError):  # without a cache there is no next time
                    archive.make_soon(*sessions.homes())


def answer(spark: SparkSession, topics: QueryTopics, query: str) -> DataFrame:
    """What a query is answered by; raises InvalidQuery."""
    made: set[str] = set()
    if _asks_for_names(spark, query):
        _make_names(spark, topics)
    while True:
        try:
            return spark.sql(query)
        except PySparkException as error:
            name = _missed(error, topics)
            if name is None or name in made:
                raise refused(error) from error
        made.add(name)
        make_view(spark, topics, name)


def make_view(spark: SparkSession, topics: QueryTopics, name: str) -> None:
    """Let a topic be a table of this session; raises InvalidQuery."""
    reader = spark.read.format("penstock").options(**topics.options)
    reader = reader.option("subscribe", name).option("includeHeaders", "true")
    schema = topics.schemas.get(name)
    fields: list[str] = []
    if schema is not None and (columns := of_schema(parsed(schema))).fields:
        reader = reader.option("valueSchema", columns.json())
        fields = columns.fieldNames()
    try:
        frame = readable(reader.load()).select(
            [_in_view(one, own) for one, own in view(fields).items()]
        )
        frame.createOrReplaceTempView(_identifier(name))
    except PySparkException as error:
        raise refused(error) from error


def _in_view(name: str, own: str | None) -> Column:
    column = col(_identifier(name))
    if own != "headers":
        return column
    texts = transform(
        column, lambda one: struct(one.key, one.value.cast("string").alias("value"))
    )
    return map_from_entries(texts).alias(name)


def readable(frame: DataFrame) -> DataFrame:
    """The frame with text where it has bytes."""
    return frame.select(
        [
            col(_identifier(one.name)).cast("string").alias(one.name)
            if isinstance(one.dataType, BinaryType)
            else col(_identifier(one.name))
            for one in frame.schema.fields
        ]
    )


def topic_in(parameters: Mapping[str, str], names: Sequence[str]) -> str:
    """The topic that a missing table stands for; raises InvalidQuery."""
    parts = [
        one.replace("``", "`") for one in _NAME.findall(parameters["relationName"])
    ]
    wanted = ".".join(parts)
    alike = [name for name in names if name.lower() == wanted.lower()]
    found = wanted if wanted in alike else (alike[0] if len(alike) == 1 else None)
    if found is None:
        raise InvalidQuery(f"there is no topic {wanted}", suggestion(wanted, names))
    if len(parts) > 1:
        raise InvalidQuery(f"there is no table {wanted}", f"write `{found}`")
    return found


def shown(frame: DataFrame) -> DataFrame:
    """The frame with times as text: rows have them in the time zone of the machine."""
    names = [f"_{place}" for place in range(len(frame.columns))]
    types = [one.dataType for one in frame.schema.fields]
    return frame.toDF(*names).select(
        [
            _shown(col(name), type_).alias(name)
            for name, type_ in zip(names, types, strict=True)
        ]
    )


def _shown(column: Column, kind: DataType) -> Column:
    """Times as text, however deep they are."""
    if isinstance(kind, TimestampType):
        return date_format(column, _TIME)
    if "timestamp" not in kind.simpleString():
        return column
    if isinstance(kind, ArrayType):
        return transform(column, lambda one: _shown(one, kind.elementType))
    if isinstance(kind, MapType):
        keys = transform_keys(column, lambda key, _: _shown(key, kind.keyType))
        return transform_values(keys, lambda _, one: _shown(one, kind.valueType))
    if isinstance(kind, StructType):
        parts = [
            _shown(column.getField(one.name), one.dataType).alias(one.name)
            for one in kind.fields
        ]
        return when(column.isNotNull(), struct(*parts))
    return column


def rows(frame: DataFrame) -> Iterator[Row]:
    """Row by row, in bounded memory; raises InvalidQuery."""
    try:
        yield from frame.toLocalIterator(prefetchPartitions=True)
    except PySparkException as error:
        raise refused(error) from error


def first_rows(frame: DataFrame, limit: int) -> list[Row]:
    """Raises InvalidQuery."""
    try:
        return frame.limit(limit).collect()
    except PySparkException as error:
        raise refused(error) from error


def write_parquet(frame: DataFrame, directory: Path) -> Path:
    """All rows as one file below the directory; raises InvalidQuery."""
    target = directory / "parquet"
    try:
        frame.coalesce(1).write.parquet(str(target))
    except PySparkException as error:
        raise refused(error) from error
    return next(target.glob("part-*.parquet"))


def refused(error: PySparkException) -> InvalidQuery:
    """What a person can use of an error of Spark."""
    text = str(error)
    if found := _OURS.findall(text):
        return InvalidQuery(found[-1])
    first_line, _, _ = text.strip().partition("\n")
    return InvalidQuery(_STATE.sub("", first_line).rstrip(" ;"))


def _missed(error: PySparkException, topics: QueryTopics) -> str | None:
    """The topic whose view Spark misses, if it is that; raises InvalidQuery."""
    if not isinstance(error, AnalysisException) or error.getCondition() != _NO_TABLE:
        return None
    return topic_in(error.getMessageParameters() or {}, topics.names)


def _beside(running: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """Another session of the same Spark, with views of its own."""
    spark = running.newSession()
    for name, value in conf.items():
        spark.conf.set(name, value)
    register(spark)
    return spark


def _asks_for_names(spark: SparkSession, query: str) -> bool:
    """Is it SHOW TABLES or the like? Only Spark's own parser can tell."""
    if "show" not in query.lower():
        return False
    try:
        parser = spark._jsparkSession.sessionState().sqlParser()
        return parser.parsePlan(query).nodeName() in _LISTS
    except PySparkException:
        return False  # it is refused where it is run


def _make_names(spark: SparkSession, topics: QueryTopics) -> None:
    """Tables of nothing: they are listed, and cost no process."""
    nothing = spark.range(0)
    for name in topics.names:
        nothing.createOrReplaceTempView(_identifier(name))


def _identifier(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
