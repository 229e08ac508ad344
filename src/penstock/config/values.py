"""Values as people write them: TOML values, or text of the environment and flags.

An optional setting is switched off by the word ``off``. Sizes may have a unit, which
is a power of 1024: ``64KiB``. ``text_of`` writes what ``from_text`` reads.
"""

from __future__ import annotations

import math
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from penstock.model.size import read_int, read_size, size_text

OFF = "off"
BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class WrongKind(ValueError):
    """The value is none of its setting; the text says what it must be."""


def from_toml(kind: Any, raw: object, *, is_size: bool = False) -> object:
    """The value of a TOML file as its setting's type; raises WrongKind."""
    plain, optional = _without_none(kind)
    if optional and raw == OFF:
        return None
    if plain is float and type(raw) is int:
        raw = _float(str(raw))
    if is_size and plain is int and isinstance(raw, str):
        raw = read_size(raw)
    if type(raw) is _class_of(plain) and _is_finite(raw):
        return _chosen(plain, raw)
    raise WrongKind(wanted(kind, is_size=is_size))


def from_text(kind: Any, text: str, *, is_size: bool = False) -> object:
    """The value of a variable or flag as its setting's type; raises WrongKind."""
    plain, optional = _without_none(kind)
    if optional and text == OFF:
        return None
    value: object = text
    if plain is bool:
        value = BOOLEANS.get(text.lower())
    elif plain is float:
        value = _float(text)
    elif plain is int:
        value = read_size(text) if is_size else read_int(text)
    if value is None:
        raise WrongKind(wanted(kind, is_size=is_size))
    return _chosen(plain, value)


def text_of(value: object, *, is_size: bool = False) -> str:
    """The value as ``from_text`` reads it, sizes with a unit where that is shorter."""
    if value is None:
        return OFF
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_size and isinstance(value, int):
        return size_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def wanted(kind: Any, *, is_size: bool = False) -> str:
    """The kind of value a setting takes, in words."""
    plain, optional = _without_none(kind)
    words = {bool: "true or false", float: "a number", int: "a whole number"}
    text = words.get(plain, "text")
    if get_origin(plain) is Literal:
        text = " or ".join(map(repr, get_args(plain)))
    if is_size and plain is int:
        text = "a whole number, or a size like 64KiB, 1MiB or 1GiB"
    return f"{text}, or {OFF!r}" if optional else text


def _without_none(kind: Any) -> tuple[Any, bool]:
    """The type beside None, and whether None was there."""
    if get_origin(kind) is not UnionType:
        return kind, False
    (plain,) = (part for part in get_args(kind) if part is not NoneType)
    return plain, True


def _class_of(plain: Any) -> type:
    return str if get_origin(plain) is Literal else plain


def _chosen(plain: Any, value: object) -> object:
    if get_origin(plain) is Literal and value not in get_args(plain):
        raise WrongKind(wanted(plain))
    return value


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
