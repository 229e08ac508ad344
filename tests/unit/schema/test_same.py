from __future__ import annotations

from typing import Any

import pytest

from penstock.schema.same import Twins


def same(one: Any, other: Any) -> bool:
    return Twins(one, other).same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, True),
        ({"title": "a", "type": "null"}, {"description": "b", "type": "null"}),
        ({"required": ["a", "b"]}, {"required": ["b", "a"]}),
        ({"not": {"const": 1}}, {"not": {"const": 1.0}}),
        ({"anyOf": [{}, {"type": "null"}]}, {"anyOf": [{}, {"type": "null"}]}),
        ({"patternProperties": {"x": {}}}, {"patternProperties": {"x": {}}}),
        (
            {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "null"}}},
            {"items": {"$ref": "#/$defs/b"}, "$defs": {"b": {"type": "null"}}},
        ),
        ({"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}),
    ],
)
def test_schemas_that_say_the_same_are_twins(one: Any, other: Any) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, {}),
        ({"type": "null"}, {}),
        ({"const": 1}, {"const": True}),
        ({"type": ["null"]}, {"type": "null"}),
        ({"anyOf": [{}]}, {"anyOf": [{}, {}]}),
        ({"properties": {"a": {}}}, {"properties": {"b": {}}}),
        (
            {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "null"}}},
            {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}},
        ),
        ({"$ref": "#nowhere"}, {"$ref": "#nowhere"}),
        ({"$dynamicRef": "#a"}, {"$dynamicRef": "#a"}),
        ({"items": {"$id": "inner"}}, {"items": {"$id": "inner"}}),
    ],
)
def test_schemas_that_differ_are_none(one: Any, other: Any) -> None:
    assert not same(one, other)


def test_keywords_are_compared_one_by_one() -> None:
    twins = Twins(True, True)

    assert twins.agree("not", {"not": {}, "type": "null"}, {"not": {}})
    assert not twins.agree("not", {"not": {}}, {})
    assert twins.alike({"minItems": 1, "anyOf": []}, {"minItems": 1}, "array")
    assert not twins.alike({"minItems": 1}, {}, "array")


def test_what_is_nested_too_deep_is_not_called_the_same() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100):
        schema = {"items": schema}

    assert not same(schema, {"items": schema["items"]})
