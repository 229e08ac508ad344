"""Puts the table of peers between its own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.report import HEADINGS, cells
from bench.rounds import Row

BEGIN, END = "<!-- measured peers: begin -->", "<!-- measured peers: end -->"
SECTION = f"\n## Beside its peers\n\n{BEGIN}\n{END}\n"


def write(
    path: Path, machine: Mapping[str, str], rows: Sequence[Row], notes: Sequence[str]
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    text = path.read_text()
    if BEGIN not in text:
        text += SECTION
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    parts = [
        _table(("machine", ""), machine.items()),
        _table(HEADINGS, map(cells, rows)),
        "\n".join(f"- {note}" for note in notes),
    ]
    middle = "\n\n".join(part for part in parts if part)
    path.write_text(f"{head}{BEGIN}\n\n{middle}\n\n{END}{tail}")


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    table += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(table)
