"""Puts tables between their own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from bench.peers import picture
from bench.peers.summary import Line
from bench.report import HEADINGS, cells
from bench.rounds import Row

PICTURE = Path("images") / "performance.svg"
SUMMARY_HEADINGS = (
    "workload",
    "Penstock",
    "best peer",
    "",
    "ratio",
    "CPU of Penstock",
    "of the peer",
)


def marks(name: str) -> tuple[str, str]:
    return f"<!-- measured {name}: begin -->", f"<!-- measured {name}: end -->"


def write(
    path: Path,
    machine: Mapping[str, str],
    rows: Sequence[Row],
    notes: Sequence[str],
    place: tuple[str, str, str],
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    parts = [_table(("machine", ""), machine.items()), *_tables(rows, notes)]
    _put(path, parts, place)


def write_group(
    path: Path,
    machine: Mapping[str, str],
    name: str,
    rows: Sequence[Row],
    notes: Sequence[str],
) -> None:
    """The table of one group of workloads, with the machine in one line."""
    _put(path, [_on(machine), *_tables(rows, notes)], _place(name))


def write_summary(
    path: Path, machine: Mapping[str, str], lines: Sequence[Line]
) -> None:
    """The first table of the page, and the picture of it beside the page."""
    drawing = path.parent / PICTURE
    drawing.parent.mkdir(exist_ok=True)
    drawing.write_text(picture.draw(lines))
    image = f"![The ratios of this table as bars]({PICTURE.as_posix()})"
    parts = [_on(machine), summary(lines), image]
    _put(path, parts, _place("summary"))


def summary(lines: Sequence[Line]) -> str:
    """Headings in bold, their lines below; ratios of those ahead in bold."""
    table: list[Sequence[str]] = []
    for heading, group in groupby(lines, key=lambda line: line.heading):
        table.append((f"**{heading}**", *[""] * (len(SUMMARY_HEADINGS) - 1)))
        table += [_summary_line(line) for line in group]
    return _table(SUMMARY_HEADINGS, table)


def _summary_line(line: Line) -> Sequence[str]:
    ratio = f"{line.times:.2f}x" if line.times < 10 else f"{line.times:.0f}x"
    return (
        line.words,
        line.ours,
        line.peer,
        line.theirs,
        f"**{ratio}**" if line.times >= 1 else ratio,
        _cpu(line.our_cpu_us),
        _cpu(line.their_cpu_us),
    )


def _cpu(each_us: float | None) -> str:
    return "" if each_us is None else f"{each_us:.3g} µs"


def _place(name: str) -> tuple[str, str, str]:
    begin, end = marks(name)
    return f"\n## {name}\n\n{begin}\n{end}\n", begin, end


def _on(machine: Mapping[str, str]) -> str:
    return f"Measured on {', '.join(machine.values())}."


def _tables(rows: Sequence[Row], notes: Sequence[str]) -> list[str]:
    return [
        _table(HEADINGS, map(cells, rows)),
        "\n".join(f"- {note}" for note in notes),
    ]


def _put(path: Path, parts: Sequence[str], place: tuple[str, str, str]) -> None:
    section, begin, end = place
    text = path.read_text()
    if begin not in text:
        text += section
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    middle = "\n\n".join(part for part in parts if part)
    path.write_text(f"{head}{begin}\n\n{middle}\n\n{end}{tail}")


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    table += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(table)
