"""JSON payloads as typed columns, decoded by Arrow many at a time.

The payloads of a chunk are joined by newlines and read in one go. That is sound if
each begins with ``{`` and ends with ``}``: a string cannot span a newline, and behind a
``}`` no document goes on with ``{``, so documents begin where payloads do; and if there
are as many documents as payloads, each payload is one.

If the chunk does not read, the payloads that fit no better alone are found: first by a
decoder that looks at one after the other, then by halving what is left. They go to the
column ``_corrupt``; a payload never fails a query.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.sql import types as spark

from penstock.spark.arrow_types import arrow_type

_NANOSECONDS = pa.timestamp("ns", "UTC")
_BLANKS = " \t\r\n"
_UNFIT = (pa.ArrowInvalid, pa.ArrowNotImplementedError)
# What the fields of a schema are, to the decoder that looks at payloads one by one.
_PLAIN: dict[type[spark.DataType], Any] = {
    spark.StringType: str,
    spark.BooleanType: bool,
    spark.ByteType: Annotated[int, msgspec.Meta(ge=-(1 << 7), lt=1 << 7)],
    spark.ShortType: Annotated[int, msgspec.Meta(ge=-(1 << 15), lt=1 << 15)],
    spark.IntegerType: Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)],
    spark.LongType: int,
    spark.FloatType: float,
    spark.DoubleType: float,
    spark.TimestampType: str,
    spark.DateType: str,
}


class Decoder:
    """Payloads to the columns of some fields."""

    def __init__(self, fields: list[spark.StructField]) -> None:
        self._targets = [arrow_type(field.dataType) for field in fields]
        self._names = [field.name for field in fields]
        # Missing and null are nulls, whatever a schema calls NOT NULL.
        self._ways = [pj.ParseOptions(explicit_schema=self._as_read(None))]
        if any("timestamp" in str(target) for target in self._targets):
            # Nine digits of a second fit, but then not every century does.
            self._ways.append(pj.ParseOptions(self._as_read(_NANOSECONDS)))
        for way in self._ways:
            way.unexpected_field_behavior = "ignore"
        row = _struct(spark.StructType(fields))
        self._check = msgspec.json.Decoder(row).decode

    def decode(self, payloads: pa.Array) -> tuple[list[pa.Array], pa.Array | None]:
        """The columns, and which payloads fit none of them; None: all fit."""
        table = self._read(payloads)
        if table is not None:
            return [_whole(column) for column in table.columns], None
        good = self._sound(payloads)
        parts: list[pa.Table] = []
        fit: list[int] = []
        self._halve(payloads.take(pa.array(good, pa.int64())), good, parts, fit)
        places: list[int | None] = [None] * len(payloads)
        for row, place in enumerate(fit):
            places[place] = row
        indices = pa.array(places, pa.int64())
        empty = pa.schema(list(zip(self._names, self._targets, strict=True)))
        whole = pa.concat_tables([empty.empty_table(), *parts])
        columns = [_whole(column).take(indices) for column in whole.columns]
        return columns, indices.is_null()

    def _read(self, payloads: pa.Array) -> pa.Table | None:
        """All payloads as a table; None if any does not fit."""
        try:
            text = payloads.cast(pa.string())  # JSON is UTF-8
        except pa.ArrowInvalid:
            return None
        if not _framed(text):
            text = pc.ascii_trim(text, _BLANKS)
            if not _framed(text):
                return None
        bounds = pa.array([0, len(text)], pa.int32())
        joined = pc.binary_join(pa.ListArray.from_arrays(bounds, text), "\n")
        data = joined[0].as_buffer()
        for way in self._ways:
            try:
                table = pj.read_json(
                    pa.BufferReader(data),
                    # In one block: blocks would be cut at newlines.
                    pj.ReadOptions(use_threads=False, block_size=data.size + 1),
                    way,
                )
                if table.num_rows == len(payloads):
                    return self._cast(table)
            except _UNFIT:
                continue
        return None

    def _cast(self, table: pa.Table) -> pa.Table:
        columns = [
            column if column.type == target else column.cast(target, safe=False)
            for column, target in zip(table.columns, self._targets, strict=True)
        ]
        return pa.table(columns, self._names)

    def _sound(self, payloads: pa.Array) -> list[int]:
        """Places of the payloads that look as if they would fit."""
        places = []
        for place, payload in enumerate(payloads.to_pylist()):
            try:
                self._check(payload)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue
            places.append(place)
        return places

    def _halve(
        self,
        payloads: pa.Array,
        places: list[int],
        parts: list[pa.Table],
        fit: list[int],
    ) -> None:
        if not places:
            return
        table = self._read(payloads)
        if table is not None:
            parts.append(table)
            fit += places
        elif (half := len(places) // 2) > 0:
            self._halve(payloads[:half], places[:half], parts, fit)
            self._halve(payloads[half:], places[half:], parts, fit)

    def _as_read(self, moment: pa.DataType | None) -> pa.Schema:
        return pa.schema(
            [
                (name, _as_read(target, moment))
                for name, target in zip(self._names, self._targets, strict=True)
            ]
        )


def _as_read(target: pa.DataType, moment: pa.DataType | None) -> pa.DataType:
    """The type that Arrow's JSON reader is asked for; dates it knows as numbers."""
    if pa.types.is_list(target):
        return pa.list_(_as_read(target.value_type, moment))
    if pa.types.is_struct(target):
        return pa.struct([(one.name, _as_read(one.type, moment)) for one in target])
    if pa.types.is_date(target):
        return pa.string()
    if pa.types.is_timestamp(target) and moment is not None:
        return moment
    return target


def _framed(text: pa.Array) -> bool:
    opened = pc.all(pc.starts_with(text, "{")).as_py()
    return bool(opened and pc.all(pc.ends_with(text, "}")).as_py())


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _struct(kind: spark.StructType) -> Any:
    """A msgspec type for a struct, whatever its fields are called."""
    inner = {f"f{place}": field.name for place, field in enumerate(kind.fields)}
    fields = [
        (own, _field_type(field.dataType) | None, None)
        for own, field in zip(inner, kind.fields, strict=True)
    ]
    return msgspec.defstruct("Row", fields, rename=inner)


def _field_type(kind: spark.DataType) -> Any:
    if isinstance(kind, spark.StructType):
        return _struct(kind)
    if isinstance(kind, spark.ArrayType):
        return list[_field_type(kind.elementType) | None]  # type: ignore[misc]
    return _PLAIN[type(kind)]
