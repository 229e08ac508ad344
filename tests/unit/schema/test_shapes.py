from __future__ import annotations

from typing import Any

import pytest

from penstock.schema.shapes import CannotJudge, Shapes


def types(schema: Any, **said: bool) -> list[str]:
    return [shape.type for shape in Shapes(schema).of(schema, **said)]


ALL = ["null", "boolean", "number", "string", "array", "object"]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (True, ALL),
        (False, []),
        ({}, ALL),
        ({"title": "what only describes"}, ALL),
        ({"type": "integer"}, ["number"]),
        ({"type": ["integer", "null"]}, ["null", "number"]),
        ({"enum": [1, "a", None]}, ["null", "number", "string"]),
        ({"type": "string", "enum": [1, "a"]}, ["string"]),
        ({"type": "string", "const": 1}, []),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, ["null", "string"]),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, ["string"]),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "null"}}}, ["null"]),
        ({"type": "string", "anyOf": [{"type": "null"}, {"minLength": 1}]}, ["string"]),
    ],
)
def test_a_schema_is_its_alternatives(schema: Any, found: list[str]) -> None:
    assert types(schema) == found


def test_parts_that_hold_at_once_are_kept_together() -> None:
    schema = {"type": "integer", "allOf": [{"minimum": 1}, {"minimum": 2}]}

    (shape,) = Shapes(schema).of(schema)

    assert shape.given("minimum") == [1, 2]
    assert shape.is_integer
    assert shape.values() is None
    assert shape.opaque == []


def test_listed_values_are_those_of_the_type_that_all_lists_have() -> None:
    schema = {"enum": [1, "a", "b"], "allOf": [{"enum": ["b", "c", 1]}]}

    found = {shape.type: shape.values() for shape in Shapes(schema).of(schema)}

    assert found == {"number": [1], "string": ["b"]}


def test_keywords_that_are_not_understood_are_named_where_they_count() -> None:
    schema = {"type": ["string", "object"], "patternProperties": {}}

    found = {shape.type: shape.opaque for shape in Shapes(schema).of(schema)}

    assert found == {"string": [], "object": ["patternProperties"]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#nowhere"},
        {"$ref": "elsewhere.json"},
        {"allOf": [{"$id": "inner", "$ref": "#/$defs/x"}]},
        {"allOf": [{"anyOf": [{"minimum": n} for n in range(99)]} for _ in range(9)]},
    ],
)
def test_what_is_too_odd_is_not_judged(schema: Any) -> None:
    with pytest.raises(CannotJudge):
        types(schema)


def test_what_is_combined_again_and_again_is_taken_apart_once() -> None:
    definitions: dict[str, Any] = {"a0": {"type": "integer"}}
    for level in range(1, 30):
        below = {"$ref": f"#/$defs/a{level - 1}"}
        definitions[f"a{level}"] = {"allOf": [below, below]}

    assert types({"$defs": definitions, "$ref": "#/$defs/a15"}) == ["number"]


def branch(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "string"}, {"type": "null"}],
        [{"const": 1}, {"enum": [2, 3]}],
        [branch(tag={"const": "a"}), branch(tag={"const": "b"}, x={})],
    ],
)
def test_branches_that_exclude_each_other_are_seen(branches: list[Any]) -> None:
    assert types({"oneOf": branches}, distinct=True)


@pytest.mark.parametrize(
    "branches",
    [
        [{"type": "integer"}, {"type": "number"}],
        [{"enum": [1, 2]}, {"enum": [2, 3]}],
        [branch(tag={"const": "a"}), branch(other={"const": "b"})],
        [branch(tag={"const": "a"}), branch(tag={"type": "string"})],
    ],
)
def test_branches_that_may_overlap_are_seen(branches: list[Any]) -> None:
    with pytest.raises(CannotJudge, match="oneOf"):
        types({"oneOf": branches}, distinct=True)
    assert types({"oneOf": branches})
