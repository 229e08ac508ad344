"""JSON values: their types, and when two of them are the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

_SHOWN_CHARACTERS = 60


def type_of(value: Any) -> str:
    """The JSON type of a value; integers are numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def equal(one: Any, other: Any) -> bool:
    """1 and 1.0 are the same, true and 1 are not, also deep inside."""
    if type_of(one) != type_of(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        same_names = one.keys() == other.keys()
        return same_names and all(equal(one[name], other[name]) for name in one)
    return bool(one == other)


def key_of(value: Any) -> Any:
    """Something to look a value up by: the same for values that are equal."""
    if isinstance(value, list):
        return ("array", *map(key_of, value))
    if isinstance(value, dict):
        return frozenset((name, key_of(one)) for name, one in value.items())
    return type_of(value), value


def size_of(value: Any) -> int:
    """How many values there are in a value, itself included."""
    if isinstance(value, dict):
        return 1 + sum(map(size_of, value.values()))
    return 1 + sum(map(size_of, value)) if isinstance(value, list) else 1


def among(value: Any, values: Iterable[Any]) -> bool:
    """Whether a value is in a list."""
    return any(equal(value, other) for other in values)


def shown(value: Any) -> str:
    """A value as JSON, not too much of it."""
    text = msgspec.json.encode(value).decode()
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return text[:_SHOWN_CHARACTERS] + "…"
