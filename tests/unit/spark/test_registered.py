from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidOption
from penstock.schema import schema_of
from penstock.spark.registered import columns_of, of_schema


class Line(msgspec.Struct):
    sku: str
    count: int


class Order(msgspec.Struct):
    id: str
    lines: list[Line]
    note: str | None = None


def simple(**properties: Any) -> str:
    return of_schema({"type": "object", "properties": properties}).simpleString()


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "email"}, "string"),
        ({"enum": ["a", "b"]}, "string"),
        ({"const": "a"}, "string"),
        ({"enum": [1, 2, 3]}, "bigint"),
        ({"enum": [0.5, 1.5, None]}, "double"),
        ({"const": True}, "boolean"),
        ({"anyOf": [{"type": "number"}, {"type": "null"}]}, "double"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        (
            {"type": "object", "properties": {"b": {"type": "string"}}},
            "struct<b:string>",
        ),
        (
            {"type": "object", "additionalProperties": {"type": "integer"}},
            "map<string,bigint>",
        ),
    ],
)
def test_what_has_one_type_is_a_column(schema: dict[str, Any], kind: str) -> None:
    assert simple(a=schema) == f"struct<a:{kind}>"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": ["string", "integer"]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"enum": ["a", 1]},
        {"enum": [True, 1]},
        {"enum": [None]},
        {"type": "null"},
        {"type": "array"},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"$ref": "elsewhere"},
    ],
)
def test_what_may_be_anything_is_left_out(schema: Any) -> None:
    assert simple(a=schema, b={"type": "string"}) == "struct<b:string>"


def test_a_type_of_python_is_a_table() -> None:
    schema = schema_of(Order)
    assert schema is not None

    found = columns_of({"orders": schema.decode()})

    assert found.simpleString() == (
        "struct<id:string,lines:array<struct<count:bigint,sku:string>>,note:string>"
    )


def test_references_that_go_round_end() -> None:
    tree = {
        "type": "object",
        "properties": {"a": {"$ref": "#"}, "b": {"type": "string"}},
    }

    assert "b:string" in of_schema(tree).simpleString()


def text(**kinds: str) -> str:
    properties = {name: {"type": kind} for name, kind in kinds.items()}
    return json.dumps({"type": "object", "properties": properties})


def test_topics_have_the_columns_of_all() -> None:
    found = columns_of(
        {"t": text(a="string", b="integer"), "u": text(c="number", a="string")}
    )

    assert found.simpleString() == "struct<a:string,b:bigint,c:double>"


def test_topics_that_disagree_are_no_table() -> None:
    with pytest.raises(InvalidOption, match="a is string in t, a is bigint in u"):
        columns_of({"t": text(a="string"), "u": text(a="integer")})


def test_names_that_differ_in_case_alone_are_no_columns() -> None:
    """Spark could not tell them from each other."""
    found = of_schema(json.loads(text(a="string", userId="string", userid="string")))

    assert found.simpleString() == "struct<a:string>"


def test_topics_that_disagree_about_case_are_no_table() -> None:
    with pytest.raises(InvalidOption, match="A is string in t, a is string in u"):
        columns_of({"t": text(A="string"), "u": text(a="string")})


def test_a_schema_that_promises_nothing_is_no_table() -> None:
    with pytest.raises(InvalidOption, match="the schema of t promises none"):
        columns_of({"t": "true"})
