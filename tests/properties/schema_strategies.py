"""Schemas as hypothesis draws them, and changes of them as people make them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

NAMES = ("id", "name", "price", "tags", "when", "kind")
FORMATS = ("date-time", "date", "time", "uuid", "email", "uri", "ipv4", "duration")
PATTERNS = ("^[a-z]{2,4}$", "^(a|b)+c?$", r"^\d{3}-[A-F0-9]{2}$", "x")
VALUES = st.sampled_from([None, True, False, 0, 1, -3, 2.5, "", "a", "b", "tea"])


@st.composite
def bounds(draw: Any, low: str, high: str, least: int, most: int) -> dict[str, Any]:
    one, other = sorted(draw(st.tuples(*[st.integers(least, most)] * 2)))
    found = {}
    if draw(st.booleans()):
        found[low] = one
    if draw(st.booleans()):
        found[high] = other
    return found


@st.composite
def numbers(draw: Any) -> dict[str, Any]:
    low, high = draw(
        st.sampled_from(
            [("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum")]
        )
    )
    schema = {"type": draw(st.sampled_from(["integer", "number"]))}
    found = draw(bounds(low, high, -20, 20))
    if found.get(high, 99) - found.get(low, -99) < 5:
        found.pop(high)
    if draw(st.integers(0, 3)) == 0:
        found["multipleOf"] = draw(st.sampled_from([1, 2, 0.5, 0.1]))
    return {**schema, **found}


@st.composite
def strings(draw: Any) -> dict[str, Any]:
    kind = draw(st.sampled_from(["plain", "plain", "format", "pattern"]))
    if kind == "format":
        return {"type": "string", "format": draw(st.sampled_from(FORMATS))}
    if kind == "pattern":
        return {"type": "string", "pattern": draw(st.sampled_from(PATTERNS))}
    return {"type": "string", **draw(bounds("minLength", "maxLength", 0, 12))}


def scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        numbers(),
        strings(),
        st.just({"type": "boolean"}),
        st.just({"type": "null"}),
        st.just({}),
        st.just({"type": ["string", "null"]}),
        st.lists(VALUES, min_size=1, max_size=4).map(lambda values: {"enum": values}),
        VALUES.map(lambda value: {"const": value}),
    )


@st.composite
def objects(draw: Any, inner: Any) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: draw(inner) for name in names},
    }
    if names:
        required = draw(st.lists(st.sampled_from(names), unique=True))
        schema["required"] = required
    more = draw(st.sampled_from(["nothing", "nothing", False, "schema", True]))
    if more == "schema":
        schema["additionalProperties"] = draw(inner)
    elif more != "nothing":
        schema["additionalProperties"] = more
    return schema


@st.composite
def maps(draw: Any, inner: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(inner)
    if draw(st.integers(0, 3)) == 0:
        schema["propertyNames"] = {"pattern": "^[a-z]+$"}
    return {**schema, **draw(bounds("minProperties", "maxProperties", 0, 4))}


@st.composite
def arrays(draw: Any, inner: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array"}
    if draw(st.booleans()):
        schema["items"] = draw(inner)
    if draw(st.integers(0, 2)) == 0:
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=3))
        length = len(schema["prefixItems"])
        if draw(st.booleans()):
            return {**schema, "items": False, "minItems": length, "maxItems": length}
        return schema
    if draw(st.integers(0, 3)) == 0:
        schema["uniqueItems"] = True
    return {**schema, **draw(bounds("minItems", "maxItems", 0, 3))}


@st.composite
def unions(draw: Any, inner: Any) -> dict[str, Any]:
    branches = draw(st.lists(inner, min_size=1, max_size=3))
    return {draw(st.sampled_from(["anyOf", "anyOf", "oneOf", "allOf"])): branches}


@st.composite
def tagged(draw: Any, inner: Any) -> dict[str, Any]:
    tags = draw(st.lists(st.sampled_from("abc"), unique=True, min_size=1))
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {"tag": {"const": tag}, "value": draw(inner)},
                "required": ["tag", *draw(st.sampled_from([[], ["value"]]))],
            }
            for tag in tags
        ]
    }


REFERENCES = st.sampled_from(
    [{"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/Leaf"}, {"$ref": "#"}]
)
NODES = st.recursive(
    st.one_of(scalars(), scalars(), REFERENCES),
    lambda inner: st.one_of(
        objects(inner),
        objects(inner),
        maps(inner),
        arrays(inner),
        unions(inner),
        tagged(inner),
    ),
    max_leaves=6,
)


@st.composite
def schemas(draw: Any) -> dict[str, Any]:
    """A document with definitions, which may refer to each other."""
    root = draw(st.one_of(objects(NODES), objects(NODES), NODES))
    return {
        **root,
        "$defs": {
            "Node": {
                "type": "object",
                "properties": {
                    "value": draw(scalars()),
                    "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
                },
                "required": draw(st.sampled_from([[], ["value"], ["next"]])),
            },
            "Leaf": draw(scalars()),
        },
    }


@st.composite
def changed(draw: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """A copy of a schema that differs in a few places."""
    copy = deepcopy(schema)
    for _ in range(draw(st.integers(1, 3))):
        places = [copy]
        _collect(copy, places)
        _change(draw, draw(st.sampled_from(places)))
    return copy


def _collect(node: Any, places: list[dict[str, Any]]) -> None:
    for key, value in node.items() if isinstance(node, dict) else ():
        if key in ("properties", "$defs"):
            below = list(value.values())
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            below = value
        elif key in ("items", "additionalProperties"):
            below = [value]
        else:
            continue
        for one in below:
            if isinstance(one, dict):
                places.append(one)
                _collect(one, places)


def _change(draw: Any, node: dict[str, Any]) -> None:
    def widened() -> None:
        for key in ("minimum", "minLength", "minItems", "maxLength", "pattern"):
            if draw(st.booleans()):
                node.pop(key, None)

    def nullable() -> None:
        if node.get("type", "null") in ("integer", "string", "object", "array"):
            node["type"] = [node["type"], "null"]

    def new_field() -> None:
        properties = node.setdefault("properties", {})
        properties[draw(st.sampled_from([*NAMES, "new"]))] = draw(scalars())

    def lost_field() -> None:
        names = list(node.get("properties", {}))
        if names:
            name = draw(st.sampled_from(names))
            del node["properties"][name]
            if name in node.get("required", []) and draw(st.booleans()):
                node["required"].remove(name)

    def required() -> None:
        names = list(node.get("properties", {}))
        node["required"] = draw(
            st.lists(st.sampled_from(names), unique=True) if names else st.just([])
        )

    def closed() -> None:
        node["additionalProperties"] = draw(st.sampled_from([True, False]))

    def integer() -> None:
        if node.get("type") == "integer":
            node["type"] = "number"

    def values() -> None:
        if "enum" in node:
            node["enum"] = [*node["enum"], draw(VALUES)]

    def union() -> None:
        other = dict(node)
        other.pop("$defs", None)
        kept = {"$defs": node["$defs"]} if "$defs" in node else {}
        node.clear()
        node.update(kept, anyOf=[other, draw(scalars())])

    changes = [widened, nullable, new_field, lost_field, required, closed]
    draw(st.sampled_from([*changes, integer, values, union]))()
