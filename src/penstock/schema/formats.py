"""Formats of strings: which are checked, and those that Python writes more freely.

Some are our own: ``decimal``, and ``local-date-time`` and ``partial-time`` for times
that must not have an offset. RFC 3339 asks for an offset behind every time and for
whole numbers in a duration; naive times and timedeltas of Python have neither, and
they are what types make.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation

# What the validator asserts. Others, like "binary", only describe.
CHECKED = frozenset(
    {
        "date",
        "date-time",
        "decimal",
        "duration",
        "email",
        "hostname",
        "idn-email",
        "idn-hostname",
        "ipv4",
        "ipv6",
        "iri",
        "iri-reference",
        "json-pointer",
        "local-date-time",
        "partial-time",
        "regex",
        "relative-json-pointer",
        "time",
        "uri",
        "uri-reference",
        "uri-template",
        "uuid",
    }
)

# Patterns of a schema: bytes in JSON, and whole numbers as keys of a map.
BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
WHOLE = "^(0|-?[1-9][0-9]*)$"

_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]", re.ASCII)
_TIME = re.compile(
    r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)?\Z",
    re.ASCII,
)
_NUMBER = r"\d+(\.\d+)?"
_DURATION = re.compile(
    rf"-?P(?=[\dT])({_NUMBER}Y)?({_NUMBER}M)?({_NUMBER}W)?({_NUMBER}D)?"
    rf"(T(?=\d)({_NUMBER}H)?({_NUMBER}M)?({_NUMBER}S)?)?\Z",
    re.ASCII,
)


def is_time(text: str) -> bool:
    """A time of the day, with or without an offset."""
    return _TIME.match(text) is not None


def is_date_time(text: str) -> bool:
    """A date and a time, with or without an offset."""
    if _DATE.match(text) is None or not is_time(text[11:]):
        return False
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def is_local_date_time(text: str) -> bool:
    """A date and a time without an offset."""
    return is_date_time(text) and is_partial_time(text[11:])


def is_partial_time(text: str) -> bool:
    """A time of the day without an offset."""
    return is_time(text) and not text.endswith(("Z", "z")) and not {"+", "-"} & {*text}


def is_duration(text: str) -> bool:
    """A duration, its parts with or without fractions."""
    return _DURATION.match(text) is not None


def is_decimal(text: str) -> bool:
    """A number of any precision, as Python's Decimal reads it."""
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


FREER: dict[str, Callable[[str], bool]] = {
    "date-time": is_date_time,
    "decimal": is_decimal,
    "duration": is_duration,
    "local-date-time": is_local_date_time,
    "partial-time": is_partial_time,
    "time": is_time,
}
