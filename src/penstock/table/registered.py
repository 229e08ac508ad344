"""The columns that a topic's registered schema promises.

JSON Schema says more than a table can, and less: what has one type that a column can
have becomes a column; what may be of several types, or of any, is left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from penstock.schema import Schema
from penstock.schema.document import resolved

SIMPLE: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
FORMATS: dict[str, pa.DataType] = {
    "date-time": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
}
_OF_VALUES = {str: "string", int: "integer", float: "number", bool: "boolean"}
# Deeper than any payload; references may also go round in circles.
MAX_NESTING = 50


def of_schema(root: Schema) -> pa.Schema:
    """The fields of an object that have one type."""
    kind = _type(root, root, MAX_NESTING)
    if kind is None or not pa.types.is_struct(kind):
        return pa.schema([])
    return pa.schema(list(kind))


def _type(root: Schema, schema: Any, room: int) -> pa.DataType | None:
    if not isinstance(schema, dict) or not room:
        return None
    if "$ref" in schema:
        return _type(root, resolved(root, schema["$ref"]), room - 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return _one(root, schema[word], room)
    return _plain(root, schema, room)


def _one(root: Schema, choices: Any, room: int) -> pa.DataType | None:
    """The type of the only choice besides null."""
    others = [one for one in choices if one != {"type": "null"}]
    return _type(root, others[0], room - 1) if len(others) == 1 else None


def _plain(root: Schema, schema: dict[str, Any], room: int) -> pa.DataType | None:
    match _name(schema):
        case "object":
            return _object(root, schema, room)
        case "array":
            element = _type(root, schema.get("items"), room - 1)
            return None if element is None else pa.list_(element)
        case "string" if schema.get("format") in FORMATS:
            return FORMATS[schema["format"]]
        case str(name):
            return SIMPLE.get(name)
    return None


def _object(root: Schema, schema: dict[str, Any], room: int) -> pa.DataType | None:
    """A struct of what it may have; a map where only the values have a type."""
    if schema.get("properties"):
        return _struct(root, schema["properties"], room)
    value = _type(root, schema.get("additionalProperties"), room - 1)
    return None if value is None else pa.map_(pa.string(), value)


def _struct(root: Schema, properties: Any, room: int) -> pa.DataType | None:
    kinds = {name: _type(root, one, room - 1) for name, one in properties.items()}
    # A query in SQL cannot tell names that differ in their case alone.
    alike = Counter(name.lower() for name in kinds)
    fields = [
        pa.field(name, kind)
        for name, kind in kinds.items()
        if kind is not None and alike[name.lower()] == 1
    ]
    return pa.struct(fields) if fields else None


def _name(schema: dict[str, Any]) -> str | None:
    """The one type besides null, said or shown by the values that are allowed."""
    said = schema.get("type")
    if said is None:
        values = [schema["const"]] if "const" in schema else schema.get("enum", [])
        kinds = {_OF_VALUES.get(type(one)) for one in values if one is not None}
        return kinds.pop() if len(kinds) == 1 else None
    names = [said] if isinstance(said, str) else [one for one in said if one != "null"]
    return names[0] if len(names) == 1 else None
