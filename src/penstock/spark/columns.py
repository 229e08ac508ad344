"""The columns of a topic, as Spark's Kafka source names them, made from frames.

The arrays of a frame are its own buffers (log/arrow.py). Small frames are put together
into larger batches, and what Spark wants in another type is converted then, a column at
a time: nothing here runs once for each event.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import types as spark

from penstock.errors import InvalidOption
from penstock.log import Batch
from penstock.log.arrow import record_batch
from penstock.spark.arrow_types import arrow_schema
from penstock.spark.ddl import relaxed
from penstock.spark.payloads import Decoder

# Rows of one record batch and bytes of their frames: past either it goes to Spark.
# Measured: what is larger leaves the processor's caches and costs half as much again,
# what is smaller costs Spark more for every batch.
CHUNK_ROWS = 1 << 13
CHUNK_BYTES = 2 << 20

CORRUPT = "_corrupt"
_HEADER = spark.StructType(
    [
        spark.StructField("key", spark.StringType()),
        spark.StructField("value", spark.BinaryType()),
    ]
)
FIELDS: dict[str, spark.DataType] = {
    "key": spark.BinaryType(),
    "value": spark.BinaryType(),
    "topic": spark.StringType(),
    "partition": spark.IntegerType(),
    "offset": spark.LongType(),
    "timestamp": spark.TimestampType(),
    "timestampType": spark.IntegerType(),
    "headers": spark.ArrayType(_HEADER),
    "id": spark.StringType(),
    "priority": spark.IntegerType(),
    "parent": spark.StringType(),
    "producer": spark.StringType(),
}
NEVER_NULL = frozenset(FIELDS) - {"key", "parent", "producer"}
# Those that are not kept for each event: the topic, and what is 0 everywhere.
_CONSTANT = frozenset({"topic", "partition", "timestampType"})


@dataclass(frozen=True)
class Layout:
    """The columns of a query: of the event, of its payload, or ``_corrupt``.

    ``own`` says of each column which of FIELDS it is; None: the payload's.
    """

    schema: spark.StructType
    own: tuple[str | None, ...]
    typed: spark.StructType | None = None

    @cached_property
    def kept(self) -> list[str]:
        """Columns of the log that are needed."""
        names = {name for name in self.own if name is not None} - _CONSTANT - {CORRUPT}
        if self.decoded:
            names.add("value")
        kept = ["payload" if name == "value" else name for name in sorted(names)]
        return kept or ["offset"]

    @cached_property
    def decoded(self) -> list[spark.StructField]:
        """Fields of the payload to look at: all, to know which payloads fit."""
        if self.typed is not None and CORRUPT in self.own:
            return list(self.typed.fields)
        pairs = zip(self.schema.fields, self.own, strict=True)
        return [field for field, own in pairs if own is None]

    def name_of(self, own: str) -> str | None:
        """What a column of FIELDS is called here; None: it is not wanted."""
        pairs = zip(self.schema.fields, self.own, strict=True)
        return next((field.name for field, name in pairs if name == own), None)


def everything(
    typed: spark.StructType | None, *, include_headers: bool
) -> dict[str, str | None]:
    """All columns there can be by name: which of FIELDS, or None for the payload's.

    Where a field of the payload has the name of a column, which has no case to Spark,
    the column gets an underscore, or as many as it takes.
    """
    fields = [] if typed is None else typed.fieldNames()
    columns: dict[str, str | None] = dict.fromkeys(fields)
    taken = {name.lower() for name in fields}
    for own in [CORRUPT, *FIELDS] if fields else FIELDS:
        if own != "headers" or include_headers:
            name = own
            while name.lower() in taken:
                name = f"_{name}"
            taken.add(name.lower())
            columns[name] = own
    return columns


def schema_of(
    typed: spark.StructType | None,
    chosen: Sequence[str] | None,
    *,
    include_headers: bool,
) -> spark.StructType:
    """The schema of a table; raises InvalidOption for a column that there is not.

    A payload that is decoded is not given as it is as well, unless it is chosen.
    """
    columns = everything(typed, include_headers=include_headers)
    if chosen is None:
        chosen = [name for name in columns if typed is None or columns[name] != "value"]
    for name in chosen:
        if name not in columns:
            raise InvalidOption("columns", name, _one_of(name, columns))
    types = {} if typed is None else {one.name: one.dataType for one in typed.fields}
    return spark.StructType(
        [spark.StructField(name, _type(name, columns[name], types)) for name in chosen]
    )


def layout_of(schema: spark.StructType, typed: spark.StructType | None) -> Layout:
    """How to make a schema that was given; raises InvalidOption if it cannot be."""
    columns = everything(typed, include_headers=True)
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
    return Layout(schema, own, typed)


class Builder:
    """Frames of one topic to record batches; made where they are read."""

    def __init__(self, layout: Layout, topic: str) -> None:
        self._layout = layout
        self._topic = pa.scalar(topic, pa.string())
        self._schema = arrow_schema(layout.schema)
        self._decoder = Decoder(layout.decoded) if layout.decoded else None
        self._repeated: dict[str, pa.Array] = {}

    def record_batches(self, batches: Iterable[Batch]) -> Iterator[pa.RecordBatch]:
        chunk: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            chunk.append(record_batch(batch, self._layout.kept))
            rows += len(batch)
            # A part of a frame costs as much of it as it has of its events.
            size += batch.header.length * len(batch) // batch.header.events
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield self._built(chunk)
                chunk, rows, size = [], 0, 0
        if chunk:
            yield self._built(chunk)

    def _built(self, chunk: list[pa.RecordBatch]) -> pa.RecordBatch:
        whole = chunk[0] if len(chunk) == 1 else pa.concat_batches(chunk)
        count = whole.num_rows
        decoded, corrupt = self._decoded(whole)
        arrays = []
        for own, field in zip(self._layout.own, self._schema, strict=True):
            if own is None:
                arrays.append(decoded[field.name])
            elif own == CORRUPT:
                arrays.append(corrupt)
            elif own in _CONSTANT:
                arrays.append(self._constant(own, field.type, count))
            elif own == "headers":
                arrays.append(_headers(whole.column("headers"), field.type))
            else:
                column = whole.column("payload" if own == "value" else own)
                same = column.type == field.type
                arrays.append(column if same else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, own: str, kind: pa.DataType, count: int) -> pa.Array:
        """A column of one value: a part of one that was made before, if it can be."""
        found = self._repeated.get(own)
        if found is None or len(found) < count:
            value = self._topic if own == "topic" else pa.scalar(0, kind)
            found = self._repeated[own] = pa.repeat(value, max(count, CHUNK_ROWS))
        return found.slice(0, count)

    def _decoded(
        self, whole: pa.RecordBatch
    ) -> tuple[dict[str, pa.Array], pa.Array | None]:
        """The fields of the payloads, and those payloads that have none."""
        if self._decoder is None:
            return {}, None
        payloads = whole.column("payload")
        arrays, bad = self._decoder.decode(payloads)
        names = [field.name for field in self._layout.decoded]
        columns = dict(zip(names, arrays, strict=True))
        if bad is None:
            return columns, pa.nulls(len(payloads), pa.binary())
        return columns, pa.compute.if_else(bad, payloads, pa.scalar(None, pa.binary()))


def _headers(maps: pa.Array, wanted: pa.DataType) -> pa.Array:
    element = wanted.value_type
    values = maps.items.cast(element.field("value").type)
    pairs = pa.StructArray.from_arrays([maps.keys, values], fields=list(element))
    return pa.ListArray.from_arrays(maps.offsets, pairs, type=wanted)


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
