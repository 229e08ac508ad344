"""Whether numbers and strings of one schema stay within the bounds of another."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any

from penstock.schema.formats import CHECKED
from penstock.schema.shapes import Shape

# A bound, and whether it is outside itself.
RangeBound = tuple[Fraction, bool]


def number_problems(part: dict[str, Any], shape: Shape) -> list[str]:
    """Where numbers of a shape are outside of what a part of the reader takes."""
    found = []
    whole = shape.is_integer
    low, lowest = lower([part], whole=whole), lower(shape.parts, whole=whole)
    if low is not None and (lowest is None or lowest < low):
        found.append(f"may be {_said(lowest, 'any number')}, {_rule(low, 'more')}")
    high, highest = upper([part], whole=whole), upper(shape.parts, whole=whole)
    if high is not None and (highest is None or _above(highest, high)):
        found.append(f"may be {_said(highest, 'any number')}, {_rule(high, 'less')}")
    unit = part.get("multipleOf")
    if unit is not None:
        units = [fraction(one) for one in shape.given("multipleOf")]
        if not any((one / fraction(unit)).denominator == 1 for one in units):
            what = "an integer" if unit == 1 else f"a multiple of {unit}"
            found.append(f"may be any number, has to be {what}")
    return found


def string_problems(part: dict[str, Any], shape: Shape) -> list[str]:
    """Where strings of a shape are not what a part of the reader takes."""
    found = []
    least = max(shape.given("minLength"), default=0)
    if part.get("minLength", 0) > least:
        found.append(f"may have {least} characters, minLength is {part['minLength']}")
    most = min(shape.given("maxLength"), default=None)
    limit = part.get("maxLength")
    if limit is not None and (most is None or most > limit):
        many = "any number of" if most is None else str(most)
        found.append(f"may have {many} characters, maxLength is {limit}")
    pattern = part.get("pattern")
    if pattern is not None and pattern not in shape.given("pattern"):
        found.append(f"may be any string, has to match the pattern {pattern}")
    format_ = part.get("format")
    if format_ in CHECKED and format_ not in shape.given("format"):
        found.append(f"may be any string, has to be of format {format_}")
    return found


def lower(parts: Any, *, whole: bool) -> RangeBound | None:
    """The highest of the lower bounds; of integers, one that is inside."""
    found: list[RangeBound] = []
    for part in parts:
        if "minimum" in part:
            found.append((fraction(part["minimum"]), False))
        if "exclusiveMinimum" in part:
            found.append((fraction(part["exclusiveMinimum"]), True))
    if whole:
        found = [
            (Fraction(floor(bound) + 1 if outside else ceil(bound)), False)
            for bound, outside in found
        ]
    return max(found, default=None)


def upper(parts: Any, *, whole: bool) -> RangeBound | None:
    """The lowest of the upper bounds; of integers, one that is inside."""
    found: list[RangeBound] = []
    for part in parts:
        if "maximum" in part:
            found.append((fraction(part["maximum"]), False))
        if "exclusiveMaximum" in part:
            found.append((fraction(part["exclusiveMaximum"]), True))
    if whole:
        found = [
            (Fraction(ceil(bound) - 1 if outside else floor(bound)), False)
            for bound, outside in found
        ]
    return min(found, key=lambda one: (one[0], not one[1]), default=None)


def fraction(number: float) -> Fraction:
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(str(number))


def _above(highest: RangeBound, high: RangeBound) -> bool:
    if highest[0] != high[0]:
        return highest[0] > high[0]
    return high[1] and not highest[1]


def _said(bound: RangeBound | None, otherwise: str) -> str:
    return otherwise if bound is None else _number(bound[0])


def _rule(bound: RangeBound, side: str) -> str:
    if bound[1]:
        return f"has to be {side} than {_number(bound[0])}"
    return f"has to be at {'least' if side == 'more' else 'most'} {_number(bound[0])}"


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(float(value))
