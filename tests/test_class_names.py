"""A name of a type, class or alias, stands for one thing in the whole package."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent / "src/penstock"

# One thing seen from two sides: what programs import under the word that users know,
# beside what the broker works with.
TWO_SIDES = {"Event", "Subscription"}

# Constants are in CAPITALS, and one letter is a type variable.
_ALIAS = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def test_no_name_of_a_type_is_given_twice() -> None:
    places = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        where = str(path.relative_to(ROOT))
        source = path.read_text("utf-8")
        for name in type_names(source):
            places[name].append(where)
        for name in set(type_variables(source)):
            # A type variable stands for nothing by itself: one word may do for many.
            if "a type variable" not in places[name]:
                places[name].append("a type variable")

    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == TWO_SIDES, twice


def test_classes_within_classes_and_functions_count() -> None:
    source = "class A:\n class B: ...\ndef f():\n class A: ...\n"

    assert sorted(type_names(source)) == ["A", "A", "B"]


@pytest.mark.parametrize(
    "source",
    [
        "Row = tuple[int, int]",
        "Row: TypeAlias = 'Sequence[int]'",
        "Row = NamedTuple('Row', [('offset', int)])",
        "if TYPE_CHECKING:\n    Row = tuple[int, int]",
    ],
)
def test_aliases_count(source: str) -> None:
    assert list(type_names(source)) == ["Row"]


def test_constants_variables_and_type_variables_are_no_aliases() -> None:
    source = "ROWS = 5\nrows = list[int]\nRow = TypeVar('Row')\ndef f():\n Row = 1\n"

    assert list(type_names(source)) == []
    assert list(type_variables(source)) == ["Row"]


def type_names(source: str) -> Iterator[str]:
    """Classes wherever they are, and aliases of a module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for name, value in _assigned(tree.body):
        if _ALIAS.fullmatch(name) and not _is_type_variable(value):
            yield name


def type_variables(source: str) -> Iterator[str]:
    for name, value in _assigned(ast.parse(source).body):
        if _is_type_variable(value):
            yield name


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """What a module assigns, also under a condition."""
    for node in body:
        if isinstance(node, ast.If):
            yield from _assigned(node.body + node.orelse)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value


def _is_type_variable(value: ast.expr | None) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "TypeVar"
    )
