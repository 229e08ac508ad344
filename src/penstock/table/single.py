"""One JSON payload by itself: whether it fits some fields, in words that Arrow knows.

Arrow's reader and this decoder differ in a few words, and a payload must not depend on
which of them looked at it first. So:

- ``NaN`` and ``Infinity`` are no JSON: Arrow takes them, here they are refused;
- an integer may be written ``5.0``, and a moment with a small ``t`` and ``z``, as JSON
  Schema has it: Arrow refuses both, so they are written anew for it;
- where the nesting is too deep to be looked at here, Arrow decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
import pyarrow as pa

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


def _integers(bits: int) -> Any:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


def _strict(kind: pa.DataType) -> Any:
    """What a field is, as Arrow takes it,"""
    if pa.types.is_integer(kind):
        return _integers(kind.bit_width)
    if pa.types.is_timestamp(kind):
        return Annotated[str, msgspec.Meta(pattern="^[^tz]*$")]
    return int | float | str if pa.types.is_decimal(kind) else _plain(kind)


def _lenient(kind: pa.DataType) -> Any:
    """and as it may be written anew; a decimal stays what it is, to the last digit."""
    if pa.types.is_integer(kind):
        return _Whole
    if pa.types.is_timestamp(kind):
        return _Moment
    return msgspec.Raw if pa.types.is_decimal(kind) else _plain(kind)


def _plain(kind: pa.DataType) -> Any:
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_boolean(kind):
        return bool
    assert pa.types.is_string(kind) or pa.types.is_date(kind), f"{kind} is no field"
    return str


class Single:
    """Payloads one by one, with these fields."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._check = msgspec.json.Decoder(_struct(fields, _strict)).decode
        lenient = _struct(fields, _lenient)
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


def _struct(fields: Sequence[pa.Field], type_of: Callable[[pa.DataType], Any]) -> Any:
    """A msgspec type for a struct, whatever its fields are called."""
    inner = {f"f{place}": field.name for place, field in enumerate(fields)}
    kinds = [
        (own, _optional(field.type, type_of), None)
        for own, field in zip(inner, fields, strict=True)
    ]
    return msgspec.defstruct("Row", kinds, rename=inner)


def _optional(kind: pa.DataType, type_of: Callable[[pa.DataType], Any]) -> Any:
    if pa.types.is_struct(kind):
        return _struct(list(kind), type_of) | None
    if pa.types.is_list(kind):
        return list[_optional(kind.value_type, type_of)] | None  # type: ignore[misc]
    found = type_of(kind)
    return found if found is msgspec.Raw else found | None  # which may be null, too
