"""Documented formats and limits are those of the code.

A comment in front of a table names what the table has to agree with::

    <!-- bytes: module.STRUCT -->     at, size and type of every field, and the end
    <!-- members: module.Enum -->     value and name of every member
    <!-- fields: module.Class -->     name of every field, in order
    <!-- defaults: module.Class -->   name and default of every field
    <!-- constants -->                name and value of constants
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from struct import Struct
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import penstock.log
from penstock.log.layout import (
    CHECKPOINT_SUFFIX,
    INDEX_SUFFIX,
    JOURNAL_SUFFIX,
    SEGMENT_SUFFIX,
)

ROOT = Path(__file__).resolve().parent.parent
FORMATS = ROOT / "docs" / "formats"
PAGES = [*sorted(FORMATS.glob("*.md")), ROOT / "docs" / "operations.md"]
SECTIONS = ("Version", "Crash promise", "Who writes it, and when", "Recovery")

MARKER = re.compile(r"<!-- (\w+)(?:: ([\w.]+))? -->\n\n((?:\|.*\n)+)")
ITEM = re.compile(r"(\d*)([a-zA-Z])")
DOCSTRING_ROW = re.compile(r"^    (\d+) +(\d+)? +(\S.*)$", re.MULTILINE)
TYPES = {"B": "u8", "H": "u16", "I": "u32", "Q": "u64", "q": "i64"}
SIZES = {"B": 1, "H": 2, "I": 4, "Q": 8, "q": 8}


class Field(NamedTuple):
    at: int
    size: int
    type: str


class Table(NamedTuple):
    page: str
    check: str
    name: str
    rows: list[list[str]]


def tables(page: Path) -> Iterator[Table]:
    for check, name, text in MARKER.findall(page.read_text()):
        cells = [line.strip("|").split("|") for line in text.splitlines()[2:]]
        rows = [[cell.strip() for cell in row] for row in cells]
        yield Table(page.name, check, name, rows)


def log_modules() -> list[ModuleType]:
    """All modules of the log that need no extra."""
    found = pkgutil.walk_packages(penstock.log.__path__, "penstock.log.")
    ordered = sorted({info.name for info in found} - {"penstock.log.arrow"})
    return [importlib.import_module(name) for name in ordered]


def resolve(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def fields_of(struct: Struct) -> list[Field]:
    """The fields of a little-endian layout, runs of pad bytes as one."""
    assert struct.format[0] == "<"
    found: list[Field] = []
    at = 0
    for count, code in ITEM.findall(struct.format[1:]):
        number = int(count or 1)
        whole = {"s": "bytes", "x": "zero"}.get(code)
        parts = [(number, whole)] if whole else [(SIZES[code], TYPES[code])] * number
        for size, type_ in parts:
            found.append(Field(at, size, type_))
            at += size
    assert at == struct.size
    return found


TABLES = [table for page in PAGES for table in tables(page)]
LAYOUTS = {table.name: table for table in TABLES if table.check == "bytes"}
STRUCTS = {
    id(value): f"{module.__name__}.{name}"
    for module in log_modules()
    for name, value in vars(module).items()
    if isinstance(value, Struct) and not name.startswith("_")
}
FORMAT_MODULES = [module for module in log_modules() if hasattr(module, "MAGIC")]


def of(check: str) -> list[Any]:
    return [
        pytest.param(table, id=f"{table.page}-{table.name}")
        for table in TABLES
        if table.check == check
    ]


def test_every_layout_is_documented_once() -> None:
    said = [id(resolve(table.name)) for table in TABLES if table.check == "bytes"]

    missing = [name for struct, name in STRUCTS.items() if struct not in said]
    assert missing == []
    assert len(said) == len(set(said))


@pytest.mark.parametrize("table", of("bytes"))
def test_byte_tables_are_those_of_the_code(table: Table) -> None:
    struct = resolve(table.name)
    closed = [row for row in table.rows if row[1] != "…"]

    said = [Field(int(row[0]), int(row[1]), row[2]) for row in closed]

    assert said == fields_of(struct)
    assert sum(field.size for field in said) == struct.size
    rest = [int(row[0]) for row in table.rows if row[1] == "…"]
    assert rest in ([], [struct.size])


@pytest.mark.parametrize("module", FORMAT_MODULES, ids=lambda module: module.__name__)
def test_magic_and_version_are_those_of_the_code(module: ModuleType) -> None:
    name = "LAYOUT" if hasattr(module, "LAYOUT") else "HEADER"
    rows = LAYOUTS[f"{module.__name__}.{name}"].rows

    assert rows[0][3] == f"magic `{module.MAGIC.decode()}`"
    assert rows[1][3] == f"version, {module.VERSION}"


@pytest.mark.parametrize("module", FORMAT_MODULES, ids=lambda module: module.__name__)
def test_docstrings_have_the_layout_of_the_code(module: ModuleType) -> None:
    struct = getattr(module, "LAYOUT", None) or module.HEADER
    rows = DOCSTRING_ROW.findall(module.__doc__ or "")

    said = [(int(at), int(size)) for at, size, _ in rows if size]

    assert said == [(field.at, field.size) for field in fields_of(struct)]
    assert [int(at) for at, size, _ in rows if not size] in ([], [struct.size])
    assert rows[0][2] == f'magic "{module.MAGIC.decode()}"'
    assert rows[1][2] == f"version, {module.VERSION}"


@pytest.mark.parametrize("table", of("members"))
def test_members_are_those_of_the_code(table: Table) -> None:
    said = [(int(row[0]), row[1].strip("`")) for row in table.rows]

    assert said == [(member.value, member.name) for member in resolve(table.name)]


@pytest.mark.parametrize("table", of("fields"))
def test_fields_are_those_of_the_code(table: Table) -> None:
    owner = resolve(table.name)
    struct_fields = getattr(owner, "__struct_fields__", None)
    known = struct_fields or [field.name for field in fields(owner)]

    assert [row[0].strip("`") for row in table.rows] == list(known)


@pytest.mark.parametrize("table", of("defaults"))
def test_defaults_are_those_of_the_code(table: Table) -> None:
    known = fields(resolve(table.name))
    assert all(field.default is not MISSING for field in known)

    said = [(row[0].strip("`"), row[1].strip("`")) for row in table.rows]

    assert said == [(field.name, repr(field.default)) for field in known]


@pytest.mark.parametrize("table", of("constants"))
def test_constants_are_those_of_the_code(table: Table) -> None:
    said = {row[0].strip("`"): int(row[1]) for row in table.rows}

    assert said == {name: resolve(name) for name in said}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_limits_in_the_text_are_those_of_the_code(page: Path) -> None:
    """A number with a constant behind it, as in: 65536 bytes (`INTERVAL_BYTES`)."""
    said = re.findall(r"(\d+)(?: bytes)? \(`([A-Z_]+)`\)", page.read_text())
    known = {
        name: value for module in log_modules() for name, value in vars(module).items()
    }

    assert [(int(number), name) for number, name in said] == [
        (known[name], name) for _, name in said
    ]


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.parent == FORMATS and page.name != "README.md"],
    ids=lambda page: page.name,
)
def test_every_format_says_version_promise_writer_and_recovery(page: Path) -> None:
    headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)

    assert [heading for heading in headings if heading in SECTIONS] == list(SECTIONS)


def test_every_file_of_a_data_directory_is_in_the_overview() -> None:
    text = (FORMATS / "README.md").read_text()
    suffixes = (JOURNAL_SUFFIX, CHECKPOINT_SUFFIX, SEGMENT_SUFFIX, INDEX_SUFFIX)

    assert [suffix for suffix in suffixes if f"*{suffix}`" not in text] == []


def test_every_link_leads_somewhere() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    broken = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text())
        if not link.startswith("https://") and not leads_somewhere(page, link)
    ]

    assert not broken, "\n".join(broken)


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as a forge makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.replace(" ", "-") for text in kept}
