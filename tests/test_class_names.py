"""A class name stands for one thing in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src/penstock"

# One thing seen from two sides: what programs import under the word that users know,
# beside what the broker works with.
TWO_SIDES = {"Event", "Subscription"}


def test_no_class_name_is_given_twice() -> None:
    places = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for name in class_names(path.read_text("utf-8")):
            places[name].append(str(path.relative_to(ROOT)))

    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() == TWO_SIDES, twice


def test_classes_within_classes_and_functions_count() -> None:
    source = "class A:\n class B: ...\ndef f():\n class A: ...\n"

    assert sorted(class_names(source)) == ["A", "A", "B"]


def class_names(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield node.name
