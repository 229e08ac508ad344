"""The live table: redrawn on a terminal, a line now and then anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.supervisor.figures import StageCounts, grouped
from penstock.supervisor.process import PartState

# Between two plain lines.
LINE_S = 5.0
_COLOURS = {
    PartState.READY: "green",
    PartState.ENDED: "dim",
    PartState.PAUSED: "red",
    PartState.STARTING: "yellow",
    PartState.WAITING: "dim",
}


class Display(Protocol):
    """What shows rows."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None: ...


class LiveTable:
    """On a terminal."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
        self._live.update(drawn(rows, heading), refresh=True)


class PlainLines:
    """Where nothing can be redrawn."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._told_s = float("-inf")
        self._states: dict[str, PartState] = {}
        self._once = ""
        """What stands below the heading; said when it changes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, rows: Sequence[StageCounts], heading: str, now_s: float) -> None:
        for row in rows:
            if self._states.get(row.name) is not row.state:
                self._states[row.name] = row.state
                note = f": {row.note}" if row.state is PartState.PAUSED else ""
                self._say(f"{row.name} is {row.state.value}{note}")
        heading, _, once = heading.partition("\n")
        if once != self._once:
            self._once = once
            self._say(once)
        if now_s - self._told_s >= LINE_S:
            self._told_s = now_s
            self._say(heading)
            for line in _lines(rows):
                self._say(line)


def drawn(rows: Sequence[StageCounts], heading: str) -> Group:
    """The rows as a table for a terminal, below what stands below its heading."""
    heading, _, once = heading.partition("\n")
    # Not in the title, which is broken where the table ends: a link must not be.
    above = [Text(once, overflow="fold")] if once else []
    table = Table(title=heading, title_justify="left", expand=False, box=None)
    for name in ("STAGE", "STATE"):
        table.add_column(name)
    for name in ("EVENTS", "PER SECOND", "LAG"):
        table.add_column(name, justify="right")
    table.add_column("", no_wrap=True, overflow="ellipsis", max_width=60, style="dim")
    for row in rows:
        table.add_row(
            row.name,
            f"[{_COLOURS[row.state]}]{row.state.value}[/]",
            number(row.events),
            _rate(row),
            number(row.lag),
            _remark(row).replace("[", r"\["),
        )
    return Group(*above, table)


def number(value: int | None) -> str:
    """A number for a person; ``-`` if it is not known."""
    return "-" if value is None else grouped(value)


def _lines(rows: Sequence[StageCounts]) -> list[str]:
    """A line for each row, aligned."""
    width = max((len(row.name) for row in rows), default=0)
    return [
        f"  {row.name:<{width}}  {_rate(row):>7}/s  lag {number(row.lag):>7}"
        f"  {_remark(row)}".rstrip()
        for row in rows
    ]


def _rate(row: StageCounts) -> str:
    return number(None if row.rate is None else round(row.rate))


def _remark(row: StageCounts) -> str:
    """What is not the same all the time."""
    notes = [row.note] if row.note else []
    if row.restarts:
        notes.append("restarted" + (f" {row.restarts}x" if row.restarts > 1 else ""))
    if row.errors:
        notes.append(f"{row.errors} error{'s' if row.errors > 1 else ''}")
    return ", ".join(notes)
