from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from penstock.schema.ranges import fraction, lower, number_problems, string_problems
from penstock.schema.ranges import upper as upper_bound
from penstock.schema.shapes import INTEGER, Shape


def number(*parts: dict[str, Any]) -> Shape:
    return Shape("number", parts)


@pytest.mark.parametrize(
    ("part", "shape"),
    [
        ({"minimum": 1}, number({"minimum": 1})),
        ({"minimum": 1}, number({"exclusiveMinimum": 1})),
        ({"minimum": 1}, number(INTEGER, {"exclusiveMinimum": 0})),
        ({"exclusiveMaximum": 10}, number(INTEGER, {"maximum": 9})),
        ({"maximum": 9.5}, number({"maximum": 99}, {"exclusiveMaximum": 9.5})),
        ({"multipleOf": 0.1}, number({"multipleOf": 0.5})),
        (INTEGER, number({"multipleOf": 3})),
        ({}, number()),
    ],
)
def test_numbers_within_the_bounds_have_no_problem(
    part: dict[str, Any], shape: Shape
) -> None:
    assert number_problems(part, shape) == []


@pytest.mark.parametrize(
    ("part", "shape", "text"),
    [
        ({"minimum": 1}, number(), "may be any number, has to be at least 1"),
        (
            {"exclusiveMinimum": 1},
            number({"minimum": 1}),
            "may be 1, has to be more than 1",
        ),
        (
            {"exclusiveMaximum": 2.5},
            number({"maximum": 2.5}),
            "may be 2.5, has to be less than 2.5",
        ),
        ({"maximum": 3}, number(), "may be any number, has to be at most 3"),
        (
            INTEGER,
            number({"multipleOf": 0.5}),
            "may be any number, has to be an integer",
        ),
        (
            {"multipleOf": 0.1},
            number(),
            "may be any number, has to be a multiple of 0.1",
        ),
    ],
)
def test_numbers_outside_the_bounds_are_told(
    part: dict[str, Any], shape: Shape, text: str
) -> None:
    assert number_problems(part, shape) == [text]


def test_bounds_of_integers_are_inside() -> None:
    parts = [{"exclusiveMinimum": 0.5}, {"exclusiveMaximum": 3}]

    assert lower(parts, whole=True) == (Fraction(1), False)
    assert upper_bound(parts, whole=True) == (Fraction(2), False)
    assert lower(parts, whole=False) == (Fraction(1, 2), True)
    assert lower([], whole=True) is None
    assert fraction(0.1) == Fraction(1, 10)


@pytest.mark.parametrize(
    ("part", "given", "text"),
    [
        ({"minLength": 2}, {"minLength": 2}, None),
        ({"minLength": 2}, {}, "may have 0 characters, minLength is 2"),
        ({"maxLength": 2}, {"maxLength": 1}, None),
        (
            {"maxLength": 2},
            {},
            "may have any number of characters, maxLength is 2",
        ),
        ({"maxLength": 2}, {"maxLength": 3}, "may have 3 characters, maxLength is 2"),
        ({"pattern": "a"}, {"pattern": "a"}, None),
        (
            {"pattern": "a"},
            {"pattern": "b"},
            "may be any string, has to match the pattern a",
        ),
        ({"format": "uuid"}, {"format": "uuid"}, None),
        ({"format": "uuid"}, {}, "may be any string, has to be of format uuid"),
        ({"format": "binary"}, {}, None),
    ],
)
def test_strings_are_compared_by_every_keyword(
    part: dict[str, Any], given: dict[str, Any], text: str | None
) -> None:
    found = string_problems(part, Shape("string", (given,)))

    assert found == ([] if text is None else [text])
