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
HTTP_BEGIN, HTTP_END = "<!-- measured http: begin -->", "<!-- measured http: end -->"
# Benchmarks that have a section of their own begin with one of these.
HTTP = ("http", "dashboard")


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
    """Put machine and table between the marks of their section of the page.

    A section of which nothing was measured stays as it is.
    """
    http = [row for row in rows if row.benchmark.startswith(HTTP)]
    log = [row for row in rows if row not in http]
    page = path.read_text()
    for begin, end, part in ((BEGIN, END, log), (HTTP_BEGIN, HTTP_END, http)):
        if part:
            head, rest = page.split(begin)
            tables = [
                _markdown(("machine", ""), machine.items()),
                _markdown(HEADINGS, map(cells, part)),
            ]
            tail = rest.split(end)[1]
            page = head + begin + "\n\n" + "\n\n".join(tables) + "\n\n" + end + tail
    path.write_text(page)


def _markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    table += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(table)
