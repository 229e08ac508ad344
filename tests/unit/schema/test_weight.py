from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InvalidSchema, TooMuchWork
from penstock.schema.limits import MAX_PATTERNS, check_limits
from penstock.schema.weight import MAX_LEVELS, weight_of

INT = {"type": "integer"}
ANY_INT = {"anyOf": [INT, INT]}


@pytest.mark.parametrize(
    ("schema", "weight"),
    [
        (True, 1),
        (INT, 1),
        (ANY_INT, 3),
        ({"properties": {"a": INT, "b": ANY_INT}}, 4),
        ({"prefixItems": [INT, INT], "items": INT}, 3),
        ({"patternProperties": {"a": INT, "b": INT}}, 5),
        ({"enum": [1, 2, 3]}, 1),
        ({"enum": [[1], {}, 3]}, 3),
        ({"$ref": "#/$defs/a", "$defs": {"a": ANY_INT}}, 4),
        ({"$ref": "#a", "$defs": {"x": {"$anchor": "a", **ANY_INT}}}, 4),
        ({"$ref": "x#a", "$defs": {"x": {"$id": "x", "$anchor": "a", **ANY_INT}}}, 4),
        ({"$ref": "x#/not", "$defs": {"x": {"$id": "x", "not": ANY_INT}}}, 4),
        ({"items": {"$ref": "#"}}, 3),
        ({"$ref": "#"}, 2),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, 102),
    ],
)
def test_weight_is_how_often_a_place_is_checked(schema: Any, weight: int) -> None:
    assert weight_of(schema) == weight


def test_references_are_followed_without_recursion() -> None:
    def chained(levels: int) -> dict[str, Any]:
        defs = {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(levels)}
        return {"$ref": "#/$defs/a0", "$defs": {**defs, f"a{levels}": INT}}

    assert weight_of(chained(MAX_LEVELS - 2)) == MAX_LEVELS
    with pytest.raises(InvalidSchema, match=f"deeper than {MAX_LEVELS} levels"):
        weight_of(chained(MAX_LEVELS))


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "http://elsewhere/"},
        {"allOf": [{"$anchor": "a"}, {"$anchor": "a"}]},
    ],
)
def test_what_cannot_be_counted_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchema):
        weight_of(schema)


def test_limits_are_named() -> None:
    with pytest.raises(TooMuchWork, match=r"2 checks .* broker.max_schema_weight"):
        check_limits(ANY_INT, 2)
    check_limits(ANY_INT, 3)
    patterns = [{"pattern": f"a{n}"} for n in range(MAX_PATTERNS + 1)]
    with pytest.raises(InvalidSchema, match=f"101 patterns, limit {MAX_PATTERNS}"):
        check_limits({"anyOf": patterns}, 10_000)
    check_limits({"anyOf": patterns[1:]}, 10_000)


def test_reading_a_string_weighs_more_than_a_plain_check() -> None:
    assert weight_of({"format": "date"}) == 1
    assert weight_of({"format": "email"}) == 6
    assert weight_of({"pattern": "a"}) == 6
    assert weight_of({"format": "date-time"}) == 21
    assert weight_of({"properties": {"a": {"format": "date-time"}} | {"b": {}}}) == 22


def test_numbers_that_are_compared_weigh_more_than_words() -> None:
    words = {"anyOf": [{"const": f"w{number}"} for number in range(50)]}
    numbers = {"anyOf": [{"const": number} for number in range(50)]}

    assert weight_of(words) < 100
    assert weight_of(numbers) > 1_000
    assert weight_of({"enum": list(range(1_000))}) < 10
