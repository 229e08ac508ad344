from __future__ import annotations

from base64 import b64decode
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidSchema, UnsupportedSchema
from penstock.schema.check import compiled
from penstock.schema.mock import mock


class Line(msgspec.Struct):
    sku: str
    price: float
    children: list[Line] = []


class Order(msgspec.Struct):
    id: int
    lines: list[Line]
    email: str | None = None


def made(schema: Any, count: int = 30, seed: int | str = 1) -> list[Any]:
    found = list(mock(schema, seed, count))
    validator = compiled(schema)
    assert all(map(validator.is_valid, found)), found
    return found


def test_the_same_seed_makes_the_same_and_more_begins_with_it() -> None:
    schema = msgspec.json.schema(Order)

    assert made(schema, 5) == made(schema, 10)[:5]
    assert made(schema, 5, seed="x") != made(schema, 5)


def test_what_is_optional_is_sometimes_absent() -> None:
    documents = made(msgspec.json.schema(Order))

    assert {"email" in one for one in documents} == {True, False}
    assert {one.get("email") is None for one in documents} == {True, False}
    assert all(msgspec.convert(one, Order) for one in documents)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"enum": [1, "a", None]},
        {"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5},
        {"type": "integer", "maximum": -5000},
        {"type": "number", "minimum": 0.1, "maximum": 0.2, "multipleOf": 0.05},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
        {"type": "string", "minLength": 90, "maxLength": 91},
        {"type": "string", "maxLength": 0},
        {"type": "string", "pattern": "^[a-z]{1,9}$", "minLength": 4, "maxLength": 6},
        {"type": "string", "format": "binary"},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
        {"type": "array", "prefixItems": [{"type": "null"}, {}], "items": False},
        {"type": "array", "prefixItems": [{}], "minItems": 3, "items": {"const": 1}},
        {"type": "object", "additionalProperties": {"type": "null"}},
        {"type": "object", "minProperties": 2, "maxProperties": 3},
        {"type": "object", "propertyNames": {"pattern": "^k[0-9]$"}},
        {"type": "object", "required": ["a"]},
        {"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1},
        {"allOf": [{"required": ["a"]}, {"type": "object"}]},
        {"oneOf": [{"type": "integer"}, {"type": "number", "maximum": 3}]},
        {
            "type": "object",
            "properties": {"a": {"minimum": 1}},
            "allOf": [{"properties": {"a": {"maximum": 2, "type": "integer"}}}],
            "required": ["a"],
            "unevaluatedProperties": False,
        },
    ],
)
def test_every_keyword_is_kept(schema: Any) -> None:
    made(schema)


def test_recursion_ends() -> None:
    tree = {"type": "array", "items": {"$ref": "#"}, "minItems": 0}
    chain = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
        "required": ["next"],
    }

    made(tree)
    made(chain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "path", "keyword"),
    [
        ({"properties": {"a": {"not": {}}}, "required": ["a"], "type": "object"},)
        + ("$.a", "not"),
        ({"type": "object", "patternProperties": {}}, "$", "patternProperties"),
        ({"type": "string", "pattern": "(a|b){9999}"}, "$", "pattern"),
        ({"type": "string", "minLength": 1_000_000}, "$", "minLength"),
        ({"type": "array", "minItems": 1_000_000}, "$", "minItems"),
        ({"type": "object", "minProperties": 1_000_000}, "$", "minProperties"),
        ({"$ref": "#"}, "$", "refers to itself"),
        ({"type": "string", "pattern": "a", "allOf": [{"pattern": "b"}]},)
        + ("$", "pattern"),
        (False, "$", "nothing was found"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "$", "nothing was found"),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "$", "nothing"),
        (
            {
                "type": "array",
                "minItems": 900,
                "items": {"type": "array", "minItems": 900},
            },
            "$[",
            "too large",
        ),
    ],
)
def test_what_cannot_be_made_up_is_named(schema: Any, path: str, keyword: str) -> None:
    with pytest.raises(UnsupportedSchema) as caught:
        list(mock(schema, 1, 1))

    assert caught.value.path.startswith(path)
    assert keyword in caught.value.keyword


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        list(mock({"type": "text"}, 1, 1))


def test_bytes_are_made_up_in_base64_and_of_their_size() -> None:
    schema = {
        "type": "string",
        "contentEncoding": "base64",
        "minLength": 8,
        "maxLength": 12,
    }

    for text in mock(schema, 1, 30):
        assert 6 <= len(b64decode(text, validate=True)) <= 9


def test_bytes_of_a_size_that_base64_does_not_have_cannot_be_made_up() -> None:
    schema = {
        "type": "string",
        "contentEncoding": "base64",
        "minLength": 5,
        "maxLength": 7,
    }

    with pytest.raises(UnsupportedSchema):
        list(mock(schema, 1, 1))


def test_a_schema_may_be_given_as_its_text() -> None:
    assert list(mock(b'{"const": 7}', 1, 2)) == [7, 7]
    assert list(mock('{"const": 7}', 1, 1)) == [7]
