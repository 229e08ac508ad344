"""The measured table: on the terminal, as JSON, and in docs/performance.md."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.rounds import Row

HEADINGS = (
    "benchmark",
    "events",
    "contender",
    "rate",
    "CPU s per million",
    "ratio",
    "target",
    "",
)
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def cells(row: Row) -> tuple[str, ...]:
    cpu = "" if row.cpu_s_per_million is None else f"{row.cpu_s_per_million:.2f}"
    met = {None: "", True: "met", False: "missed"}[row.met]
    return (
        row.benchmark,
        row.case,
        row.contender,
        row.rate,
        cpu,
        row.ratio,
        row.target,
        met,
    )


def text(rows: Sequence[Row]) -> str:
    lines = [HEADINGS, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def write_json(path: Path, machine: Mapping[str, str], rows: Sequence[Row]) -> None:
    content = {"machine": machine, "rows": [dataclasses.asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=2) + "\n")


def write_docs(path: Path, machine: Mapping[str, str], rows: Sequence[Row]) -> None:
    """Put machine and table between the two marks of the page."""
    page = path.read_text()
    head, rest = page.split(BEGIN)
    tail = rest.split(END)[1]
    parts = [_markdown(("machine", ""), machine.items())]
    parts.append(_markdown(HEADINGS, map(cells, rows)))
    path.write_text(head + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + tail)


def _markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    table += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(table)
