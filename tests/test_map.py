"""Files that the map and module notes name are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src/penstock"
# What is spoken of as `name.py`, with folders or without; not part of a command or URL.
NAMED = re.compile(r"(?<![\w./<-])((?:[\w-]+/)*\w+\.py)\b")
# Sections of the map that are about one room, by what their headings say.
ROOM = re.compile(r"^## Where does a line of (\w+)/ live\?")

# The row of a room in the table of all rooms.
ROW = re.compile(r"^\| `(\w+)/` \|")


def test_files_of_the_map_are_there() -> None:
    missing = []
    room = PACKAGE
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        if line.startswith("## "):
            found = ROOM.match(line)
            room = PACKAGE / found[1] if found else PACKAGE
        row = ROW.match(line)
        before = PACKAGE / row[1] if row else room
        for name in NAMED.findall(line):
            places = [one / name for one in (room, before, PACKAGE, ROOT / "src", ROOT)]
            there = next((one for one in places if one.exists()), None)
            if there is None:
                missing.append(name)
            else:
                before = there.parent  # the next one may be its neighbour

    assert not missing


def test_files_that_docstrings_name_are_there() -> None:
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for text in docstrings(path.read_text())
        for name in NAMED.findall(text)
        if not name.startswith("tests/")  # a user's own, in an example
        if not any(
            (one / name).exists() for one in (path.parent, PACKAGE, ROOT / "src", ROOT)
        )
    }

    assert not missing


def test_a_file_that_is_gone_is_found() -> None:
    text = '"""See log/core.py, and gone.py.\n"""\ndef f():\n  "as of x/y.py"\n'

    named = [name for one in docstrings(text) for name in NAMED.findall(one)]

    assert named == ["log/core.py", "gone.py", "x/y.py"]


def docstrings(source: str) -> Iterator[str]:
    """Docstrings, also those of attributes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(ast.Constant(str(text))):
                yield text
