from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from penstock.cli.refusal import Refusal
from penstock.cli.schemas import given_schema
from penstock.errors import InvalidSchema

TYPES = """
import msgspec

class Outer:
    class Order(msgspec.Struct):
        id: int

RAW = bytes
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shop_of_test.py").write_text(TYPES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return "shop_of_test"


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "with:colon.json"
    file.write_text('{ "type": "integer" }')

    assert given_schema(str(file)) == (b'{"type":"integer"}', "")


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"true")))

    assert given_schema("-").schema == b"true"


def test_a_type_is_imported(module: str) -> None:
    schema, name = given_schema(f"{module}:Outer.Order")

    assert b'"id":{"type":"integer"}' in schema
    assert name == f"{module}.Outer.Order"


@pytest.mark.parametrize("name", [":Order", "nowhere_at_all:Order"])
def test_a_module_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        given_schema(name)

    assert "MODULE:TYPE" in caught.value.hint


def test_a_type_that_is_none_is_told(module: str) -> None:
    with pytest.raises(Refusal):
        given_schema(f"{module}:Nothing")
    with pytest.raises(Refusal, match="raw bytes"):
        given_schema(f"{module}:RAW")


def test_what_is_no_schema_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[")

    with pytest.raises(InvalidSchema):
        given_schema(str(tmp_path / "bad.json"))
    with pytest.raises(FileNotFoundError):
        given_schema(str(tmp_path / "none.json"))
