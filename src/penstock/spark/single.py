"""One JSON payload by itself: whether it fits some fields, in words that Arrow knows.

Arrow's reader and this decoder differ in a few words, and a payload must not depend on
which of them looked at it first. So:

- ``NaN`` and ``Infinity`` are no JSON: Arrow takes them, here they are refused;
- an integer may be written ``5.0``, and a moment with a small ``t`` and ``z``, as JSON
  Schema has it: Arrow refuses both, so they are written anew for it;
- where the nesting is too deep to be looked at here, Arrow decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from pyspark.sql import types as spark

# Whole numbers that a float has exactly.
_EXACT = 1 << 53
_UNFIT = (msgspec.MsgspecError, ValueError)


class _Anew:
    """What stands for a value that is written in other words than it was."""

    __slots__ = ("value",)

    def __init__(self, value: int | str) -> None:
        self.value = value


class _Whole(_Anew):
    """An integer, however it was written."""


class _Moment(_Anew):
    """A time, with the letters that Arrow knows."""


_TEXT: dict[type[spark.DataType], Any] = {
    spark.StringType: str,
    spark.DateType: str,
    spark.BooleanType: bool,
    spark.FloatType: float,
    spark.DoubleType: float,
}


def _integers(bits: int) -> Any:
    least, most = -(1 << bits), (1 << bits) - 1
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


# What the fields are, as Arrow takes them,
_STRICT: dict[type[spark.DataType], Any] = _TEXT | {
    spark.ByteType: _integers(7),
    spark.ShortType: _integers(15),
    spark.IntegerType: _integers(31),
    spark.LongType: _integers(63),
    spark.TimestampType: Annotated[str, msgspec.Meta(pattern="^[^tz]*$")],
    spark.DecimalType: int | float | str,
}
# and as they may be written anew; a decimal stays what it is, to the last digit.
_LENIENT: dict[type[spark.DataType], Any] = _TEXT | {
    spark.ByteType: _Whole,
    spark.ShortType: _Whole,
    spark.IntegerType: _Whole,
    spark.LongType: _Whole,
    spark.TimestampType: _Moment,
    spark.DecimalType: msgspec.Raw,
}


class Single:
    """Payloads one by one, with these fields."""

    def __init__(self, fields: Sequence[spark.StructField]) -> None:
        kind = spark.StructType(list(fields))
        self._check = msgspec.json.Decoder(_struct(kind, _STRICT)).decode
        lenient = _struct(kind, _LENIENT)
        self._lenient = msgspec.json.Decoder(lenient, dec_hook=_made).decode
        self._encode = msgspec.json.Encoder(enc_hook=_written).encode

    def sound(self, payload: bytes) -> bytes | None:
        """The payload, or what it says in other words; None if it does not fit.

        What looks sound here may still be refused by Arrow, such as a date.
        """
        try:
            self._check(payload)
        except RecursionError:
            return payload
        except _UNFIT:
            return self._anew(payload)
        return payload

    def _anew(self, payload: bytes) -> bytes | None:
        try:
            payload.decode()  # also what is not looked at is JSON, and that is UTF-8
            anew = self._encode(self._lenient(payload))
            self._check(anew)
        except (*_UNFIT, RecursionError):
            return None
        return anew


def _made(kind: type, value: object) -> _Anew:
    """What the decoder calls for the types that it does not know."""
    if kind is _Moment and isinstance(value, str):
        return _Moment(value.upper())
    if kind is _Whole and isinstance(value, float):
        if value.is_integer() and abs(value) < _EXACT:
            return _Whole(int(value))
    elif kind is _Whole and type(value) is int:
        return _Whole(value)
    raise ValueError(f"{value!r} is another type")


def _written(value: _Anew) -> int | str:
    return value.value


def _struct(kind: spark.StructType, types: dict[type[spark.DataType], Any]) -> Any:
    """A msgspec type for a struct, whatever its fields are called."""
    inner = {f"f{place}": field.name for place, field in enumerate(kind.fields)}
    fields = [
        (own, _optional(field.dataType, types), None)
        for own, field in zip(inner, kind.fields, strict=True)
    ]
    return msgspec.defstruct("Row", fields, rename=inner)


def _optional(kind: spark.DataType, types: dict[type[spark.DataType], Any]) -> Any:
    if isinstance(kind, spark.StructType):
        return _struct(kind, types) | None
    if isinstance(kind, spark.ArrayType):
        return list[_optional(kind.elementType, types)] | None  # type: ignore[misc]
    found = types[type(kind)]
    return found if found is msgspec.Raw else found | None  # which may be null, too
