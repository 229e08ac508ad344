"""Values of a column as Python has them, and as text those that it does not have.

DuckDB has years up to 294246, an end of all time, and billionths of a second.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa

from penstock.errors import InvalidQuery

_PER_S = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NS = 10**9
_DAY_S = 86_400
# After so many days the calendar is the same again.
_YEARS, _DAYS = 400, 146_097
_SINCE = date(2000, 1, 1)
_SINCE_DAYS = (_SINCE - date(1970, 1, 1)).days
_ENDS = {
    **{bits: "infinity" for bits in (2**31 - 1, 2**63 - 1)},
    **{-bits: "-infinity" for bits in (2**31 - 1, 2**63 - 1)},
}


def values(column: pa.Array) -> list[Any]:
    """By row; raises InvalidQuery. A map is a dict, or pairs if keys are no names."""
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    except (OverflowError, ValueError, KeyError, TypeError):
        return [_value(one) for one in column]
    return found


def _value(one: pa.Scalar) -> Any:
    kind = one.type
    if not one.is_valid:
        return None
    if pa.types.is_map(kind):
        keys, items = values(one.values.field(0)), values(one.values.field(1))
        return _map(keys, items)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return values(one.values)
    if pa.types.is_struct(kind):
        return {name: _value(part) for name, part in one.items()}
    if pa.types.is_union(kind):
        return _value(one.value)
    try:
        return one.as_py()
    except (OverflowError, ValueError):
        return _text(one)


def _map(keys: list[Any], items: list[Any]) -> Any:
    pairs = list(zip(keys, items, strict=True))
    try:
        found = dict(pairs)
    except TypeError:
        return pairs
    return found if len(found) == len(pairs) else pairs


def _text(one: pa.Scalar) -> str:
    kind = one.type
    if pa.types.is_date32(kind):
        return _ENDS.get(one.value) or _day(one.value)
    if pa.types.is_timestamp(kind):
        return _ENDS.get(one.value) or _moment(one.value, kind)
    if pa.types.is_time(kind):
        return _clock(one.value, kind.unit)
    hint = "CAST(… AS VARCHAR) makes it text"
    raise InvalidQuery(f"a value of type {kind} cannot be shown", hint)


def _moment(value: int, kind: pa.TimestampType) -> str:
    days, rest = divmod(value, _DAY_S * _PER_S[kind.unit])
    zone = "" if kind.tz is None else "Z"
    return f"{_day(days)}T{_clock(rest, kind.unit)}{zone}"


def _day(days: int) -> str:
    cycles, rest = divmod(days - _SINCE_DAYS, _DAYS)
    day = _SINCE + timedelta(days=rest)
    year = day.year + cycles * _YEARS
    return f"{'-' * (year < 0)}{abs(year):04}-{day:%m-%d}"


def _clock(value: int, unit: str) -> str:
    seconds, rest = divmod(value, _PER_S[unit])
    ns = rest * (_NS // _PER_S[unit])
    digits = next(some for some in (3, 6, 9) if ns % 10 ** (9 - some) == 0)
    minutes, second = divmod(seconds, 60)
    fraction = f"{ns:09}"[:digits]
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}.{fraction}"
