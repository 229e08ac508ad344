from __future__ import annotations

from typing import Any, Literal

import msgspec
import pydantic
import pytest

from penstock.schema.compat import MAX_PROBLEMS, Incompatibility, judged, problems

INT, STR, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}


def record(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }


def closed(**properties: Any) -> dict[str, Any]:
    return {**record(**properties), "additionalProperties": False}


COMPATIBLE: dict[str, tuple[Any, Any]] = {
    "the same": (record(a=INT), record(a=INT)),
    "anything reads": (True, record(a=INT)),
    "an empty schema reads": ({}, {"not": {}}),
    "nothing is written": (INT, False),
    "an optional field more": (record(["a"], a=INT, b=STR), record(a=INT)),
    "a field less": (record(a=INT), record(a=INT, b=STR)),
    "a number for an integer": ({"type": "number"}, INT),
    "null is taken as well": ({"anyOf": [INT, NULL]}, INT),
    "types in a list": ({"anyOf": [INT, NULL]}, {"type": ["null", "integer"]}),
    "one value more": ({"enum": ["a", "b"]}, {"const": "a"}),
    "values of several branches": (
        {"anyOf": [{"const": "a"}, {"const": "b"}]},
        {"enum": ["a", "b"]},
    ),
    "values within bounds": ({"type": "integer", "minimum": 1}, {"enum": [1, 2]}),
    "booleans by value": ({"enum": [True, False]}, {"type": "boolean"}),
    "a map of wider values": (
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "additionalProperties": INT},
    ),
    "a record as a map": (
        {"type": "object", "additionalProperties": INT},
        closed(a=INT, b=INT),
    ),
    "a longer array": (
        {"type": "array", "maxItems": 5},
        {"type": "array", "maxItems": 4},
    ),
    "a tuple as an array": (
        {"type": "array", "items": INT, "minItems": 2},
        {"type": "array", "prefixItems": [INT, INT], "items": False, "minItems": 2},
    ),
    "at most one item is unique": (
        {"type": "array", "uniqueItems": True},
        {"type": "array", "maxItems": 1},
    ),
    "names of a kind": (
        {"type": "object", "propertyNames": {"minLength": 1}},
        {"type": "object", "propertyNames": {"minLength": 2}},
    ),
    "as many properties as there can be": (
        {"type": "object", "minProperties": 1, "maxProperties": 2},
        closed(a=INT, b=INT),
    ),
    "annotations do not count": (
        {**INT, "title": "A", "default": 1},
        {**INT, "description": "b"},
    ),
    "equal keywords that are not understood": (
        {"type": "string", "not": {"const": "x"}, "title": "a"},
        {"type": "string", "not": {"const": "x"}},
    ),
    "equal patterns of properties": (
        {"type": "object", "patternProperties": {"^x": INT}},
        {"type": "object", "patternProperties": {"^x": INT}, "minProperties": 1},
    ),
    "equal branches that may overlap": (
        {"oneOf": [INT, {"type": "number"}]},
        {"oneOf": [INT, {"type": "number"}]},
    ),
    "one of several schemas at once": (
        record(a=INT),
        {"allOf": [record(a=INT), record(b=INT)]},
    ),
    "a property that cannot be": (
        closed(a=INT),
        {**closed(a=INT), "properties": {"a": INT, "b": False}},
    ),
    "a keyword that only the writer has": (
        {"type": "array"},
        {"type": "array", "contains": {"const": 1}},
    ),
}


@pytest.mark.parametrize(
    ("reader", "writer"), COMPATIBLE.values(), ids=list(COMPATIBLE)
)
def test_what_can_be_read_has_no_problem(reader: Any, writer: Any) -> None:
    assert problems(reader, writer) == []


INCOMPATIBLE: dict[str, tuple[Any, Any, str, str]] = {
    "a required field more": (
        *(record(a=INT, b=STR), record(a=INT)),
        *("$.b", "may be missing, is required"),
    ),
    "another type": (
        *(record(a=INT), record(a=STR)),
        *("$.a", "may be a string, has to be an integer"),
    ),
    "deep inside": (
        record(items={"type": "array", "items": record(price=INT)}),
        record(items={"type": "array", "items": record(price={"type": "number"})}),
        *("$.items[*].price", "may be any number, has to be an integer"),
    ),
    "null is written": (
        *(record(a=INT), record(a={"anyOf": [INT, NULL]})),
        *("$.a", "may be null, has to be an integer"),
    ),
    "anything is written": (
        *({"type": "number"}, {}, "$"),
        "may be null, a boolean, a string, an array, an object, has to be a number",
    ),
    "a value less": (
        *({"enum": ["a"]}, {"enum": ["a", "b"]}),
        *("$", 'may be "b", which is not taken'),
    ),
    "values for a type": (
        *({"enum": ["a", "b"]}, STR),
        *("$", 'may be a string, has to be "a", "b"'),
    ),
    "a closed record": (
        *(closed(a=INT), record(a=INT, b=INT)),
        *("$.b", "may be there, is not allowed"),
    ),
    "a field that is required and not described": (
        record(a={"type": "number"}),
        {"type": "object", "properties": {}, "required": ["a"]},
        "$.a",
        "may be null, a boolean, a string, an array, an object, has to be a number",
    ),
    "items that are required and not described": (
        {"type": "array", "items": {"type": "number"}},
        {"type": "array", "prefixItems": [INT], "minItems": 2},
        "$[*]",
        "may be null, a boolean, a string, an array, an object, has to be a number",
    ),
    "a map for a closed record": (
        closed(a=INT),
        {"type": "object", "properties": {"a": INT}, "required": ["a"]}
        | {"additionalProperties": True},
        *("$.*", "may be there, is not allowed"),
    ),
    "a map of anything": (
        {"type": "object", "additionalProperties": STR},
        {"type": "object"},
        "$.*",
        "may be null, a boolean, a number, an array, an object, has to be a string",
    ),
    "a shorter array": (
        *({"type": "array", "maxItems": 1}, {"type": "array"}),
        *("$", "may have any number of items, maxItems is 1"),
    ),
    "more items": (
        *({"type": "array", "minItems": 2}, {"type": "array", "minItems": 1}),
        *("$", "may have 1 items, minItems is 2"),
    ),
    "items that repeat": (
        *({"type": "array", "uniqueItems": True}, {"type": "array"}),
        *("$", "items may repeat, have to be unique"),
    ),
    "a place in a tuple": (
        {"type": "array", "prefixItems": [INT, STR]},
        {"type": "array", "prefixItems": [INT, INT]},
        *("$[1]", "may be an integer, has to be a string"),
    ),
    "too few properties": (
        {"type": "object", "minProperties": 2},
        record(["a"], a=INT, b=INT),
        *("$", "may have 1 properties, minProperties is 2"),
    ),
    "another not": (
        {"type": "string", "not": {"const": "x"}},
        {"type": "string", "not": {"const": "y"}},
        *("$", "cannot be judged: not is not the same"),
    ),
    "patterns of properties": (
        record(a=INT),
        {**record(a=INT), "patternProperties": {"^b": INT}},
        *("$", "cannot be judged: patternProperties is not the same"),
    ),
    "names that may be anything": (
        {"type": "object", "propertyNames": {"minLength": 1}},
        {"type": "object"},
        *("$", "cannot be judged: propertyNames is not the same"),
    ),
    "several schemas at once": (
        record(a=INT, b=INT),
        {"allOf": [record(a=INT), record(b=INT)]},
        *("$", "cannot be judged: several schemas at once (allOf)"),
    ),
    "branches that overlap": (
        {"oneOf": [INT, {"type": "number"}]},
        INT,
        *("$", "cannot be judged: branches of oneOf may fit at the same time"),
    ),
    "nothing is read": (False, INT, "$", "may be an integer, has to be left out"),
    "a listed object": (
        record(a=INT),
        {"const": {"a": 1}},
        *("$", 'may be {"a":1}, which is not taken'),
    ),
}


@pytest.mark.parametrize(
    ("reader", "writer", "path", "text"), INCOMPATIBLE.values(), ids=list(INCOMPATIBLE)
)
def test_what_cannot_be_read_is_told_with_its_path(
    reader: Any, writer: Any, path: str, text: str
) -> None:
    assert problems(reader, writer) == [Incompatibility(path, text)]


def test_of_a_union_the_nearest_branch_is_reported() -> None:
    def union(size: Any) -> dict[str, Any]:
        cat = record(kind={"const": "cat"}, size=size)
        return {"oneOf": [record(kind={"const": "dog"}, name=STR), cat]}

    assert problems(union(INT), union(STR)) == [
        Incompatibility("$.size", "may be a string, has to be an integer")
    ]


# Recursion


def chain(value: Any) -> dict[str, Any]:
    node = record(value=value, next={"anyOf": [{"$ref": "#/$defs/Node"}, NULL]})
    return {"$ref": "#/$defs/Node", "$defs": {"Node": node}}


def test_recursive_schemas_are_compared() -> None:
    assert problems(chain({"type": "number"}), chain(INT)) == []
    assert problems(chain(INT), chain(STR))[0].path == "$.value"


def test_what_was_concluded_from_a_wrong_assumption_is_forgotten() -> None:
    def tree(leaf: Any) -> dict[str, Any]:
        a = record(["x"], x=leaf, b={"$ref": "#/$defs/B"})
        b = record([], a={"$ref": "#/$defs/A"})
        root = record(
            u={"anyOf": [{"$ref": "#/$defs/A"}, NULL]}, v={"$ref": "#/$defs/B"}
        )
        return {**root, "$defs": {"A": a, "B": b}}

    found = {problem.path for problem in problems(tree(INT), tree(STR))}

    assert found >= {"$.u.x", "$.v.a.x"}


def test_a_schema_that_refers_to_itself_is_not_judged() -> None:
    assert "cannot be judged" in problems({"$ref": "#"}, INT)[0].text
    assert problems({"$ref": "#"}, {"$ref": "#"}) == []


def test_effort_and_answer_are_bounded() -> None:
    deep: Any = INT
    for _ in range(200):
        deep = {"type": "array", "items": deep}
    wide = record([f"field{n}" for n in range(500)])

    assert "too large" in problems(deep, {**deep, "maxItems": 3})[0].text
    assert len(problems(wide, {"type": "object"})) == MAX_PROBLEMS


# Modes


def test_modes_look_in_their_direction() -> None:
    old, new = record(a=INT), record(a=INT, b=INT)
    narrower = Incompatibility("$.b", "old events: may be missing, is required")

    assert judged("backward", new, old) == [narrower]
    assert judged("forward", new, old) == []
    assert judged("full", new, old) == [narrower]
    assert judged("none", new, old) == []
    (found,) = judged("forward", old, new)
    assert found.text.startswith("new events: ")


# Schemas as types make them


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Old(msgspec.Struct):
    id: int
    pet: Cat | Dog
    note: str | None = None


class New(msgspec.Struct):
    id: int
    pet: Cat | Dog | None
    note: str | None = None
    tags: list[str] = []


class OldModel(pydantic.BaseModel):
    id: int
    kind: Literal["a"] = "a"
    price: float


class NewModel(OldModel):
    currency: str


def test_types_of_msgspec_are_judged() -> None:
    old, new = msgspec.json.schema(Old), msgspec.json.schema(New)

    assert judged("backward", new, old) == []
    (found,) = judged("forward", new, old)
    assert (found.path, "null" in found.text) == ("$.pet", True)


def test_models_of_pydantic_are_judged() -> None:
    old, new = OldModel.model_json_schema(), NewModel.model_json_schema()

    assert judged("forward", new, old) == []
    assert judged("backward", new, old)[0].path == "$.currency"
