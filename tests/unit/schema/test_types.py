from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from penstock.errors import InvalidSchema
from penstock.schema import Checker
from penstock.schema.types import name_of, schema_of


class Struct(msgspec.Struct):
    id: int
    when: datetime | None = None


@dataclass
class Data:
    id: int


class Dict(TypedDict):
    id: int


class Model(pydantic.BaseModel):
    id: int
    when: datetime | None = None


class NoSchema:
    pass


@pytest.mark.parametrize("kind", [Struct, Data, Dict, Model, dict[str, int]])
def test_every_way_to_describe_an_object_has_a_schema(kind: Any) -> None:
    schema = schema_of(kind)

    assert schema is not None
    checker = Checker(schema)
    assert checker.misfit(b'{"id":1}') is None
    assert checker.misfit(b'{"id":"x"}') is not None


@pytest.mark.parametrize("kind", [Struct, Model])
def test_what_a_type_writes_fits_its_schema(kind: Any) -> None:
    naive, aware = datetime(2024, 1, 1), datetime.fromisoformat("2024-01-01T00:00Z")
    schema = schema_of(kind)
    assert schema is not None

    for when in (naive, aware, None):
        one = kind(id=1, when=when)
        dumped = getattr(one, "model_dump_json", None)
        written = dumped().encode() if dumped else msgspec.json.encode(one)
        assert Checker(schema).misfit(written) is None


def test_plain_types_have_a_schema() -> None:
    assert schema_of(int) == b'{"type":"integer"}'
    assert schema_of(list[str]) == b'{"items":{"type":"string"},"type":"array"}'


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, Any, None, object])
def test_what_may_be_anything_has_none(kind: Any) -> None:
    assert schema_of(kind) is None


def test_a_type_without_a_schema_is_refused_by_name() -> None:
    with pytest.raises(InvalidSchema, match="NoSchema has no JSON Schema"):
        schema_of(NoSchema)


def test_a_type_is_called_by_its_module_and_name() -> None:
    assert name_of(Struct).endswith("test_types.Struct")
    assert name_of(int) == "int"
    assert name_of(list[int]) == "list[int]"
    assert name_of(int | None) == "int | None"
