"""Who shows which statement: marks of the tests, and the tables of the page on MQTT.

``python tests/conformance/page.py`` writes the tests into the tables; a row without a
test keeps its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent.parent / "docs" / "protocols" / "mqtt.md"
DECORATORS = {"statement": "5.0", "statement311": "3.1.1"}
ROW = re.compile(r"^\| (MQTT-\d+\.\d+\.\d+-\d+) \| ([^|]*) \| ([^|]*) \|$")
HEADING = re.compile(r"^### MQTT (5\.0|3\.1\.1)$")

Statement = tuple[str, str]
"""Version and id."""


def every_test() -> Iterator[ast.FunctionDef]:
    """Every conformance test, in the order of files and lines."""
    for path in sorted(HERE.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield node


def marks() -> dict[Statement, list[str]]:
    """The names of the tests that show each statement."""
    found: dict[Statement, list[str]] = {}
    for test in every_test():
        for one in marks_of(test):
            found.setdefault(one, []).append(test.name)
    return found


def marks_of(test: ast.FunctionDef) -> Iterator[Statement]:
    for one in test.decorator_list:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            for argument in one.args if one.func.id in DECORATORS else ():
                yield DECORATORS[one.func.id], ast.literal_eval(argument)


def rows(text: str) -> Iterator[tuple[Statement, str, str]]:
    """Statement, its words and its last cell, of every row of the page."""
    version = ""
    for line in text.splitlines():
        if heading := HEADING.match(line):
            version = heading[1]
        if row := ROW.match(line):
            yield (version, row[1]), row[2], row[3]


def cell(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def filled(text: str) -> str:
    """The page with the tests of today."""
    known, version, lines = marks(), "", []
    for line in text.splitlines():
        if heading := HEADING.match(line):
            version = heading[1]
        row = ROW.match(line)
        if row and (names := known.get((version, row[1]))):
            line = f"| {row[1]} | {row[2]} | {cell(names)} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
