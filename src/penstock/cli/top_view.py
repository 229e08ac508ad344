"""The overview as lines for a terminal of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click

from penstock.cli import show
from penstock.desk.views.figures import Overview, TopicFigures
from penstock.model.printable import printable

BARS = "▁▂▃▄▅▆▇█"
# The widest that a topic's name gets, and the narrowest.
NAME = (60, 12)
# Seconds of history beside the totals.
HISTORY = 60
SPARK = 30


def lines_of(look: Overview, width: int, height: int | None = None) -> list[str]:
    """All of it, no line wider than ``width``; ``height`` None: every topic."""
    head = [*_head(look, width), ""]
    rows = look.topics
    if height is not None:
        rows = rows[: max(height - len(head) - 2, 1)]
    left = look.topics_count - len(rows)
    body = _table(rows, width) if rows else ["no topics"]
    if left and look.topics:
        body.append(click.style(_cut(f"… and {left} more", width), dim=True))
    return [*head, *body]


def _head(look: Overview, width: int) -> Iterable[str]:
    at = datetime.fromtimestamp(look.at_ms / 1000, UTC).strftime("%H:%M:%S UTC")
    title = f"Penstock {look.version}, up {elapsed(look.uptime_s)}"
    yield click.style(_apart(title, at, width), bold=True)
    rates, history = look.rates, look.history
    bars = max(min(width - 40, HISTORY), 0)
    for name, events, size, past in (
        ("in", rates.in_, rates.in_bytes, history.in_),
        ("out", rates.out, rates.out_bytes, history.out),
    ):
        said = f"{name:<4}{number(events):>10}/s{show.size(int(size)) + '/s':>14}"
        yield _cut(f"{said}  {spark(past[-bars:]) if bars else ''}", width)
    yield _cut(
        f"lag {number(look.lag)}   unsettled {number(look.unsettled)}   "
        f"dead letters {number(look.dead_letters)}",
        width,
    )
    sync, disk = look.sync, look.disk
    free = "" if disk.free_bytes is None else f", {show.size(disk.free_bytes)} free"
    yield _cut(
        f"sync {sync.p50_ms:.1f} ms (95 %: {sync.p95_ms:.1f})   "
        f"commits {number(sync.commits_s)}/s   "
        f"disk {show.size(disk.used_bytes)}{free}",
        width,
    )
    peers = ", ".join(f"{name} {n}" for name, n in sorted(look.connections.items()))
    yield _cut(
        f"topics {number(look.topics_count)}   "
        f"subscriptions {number(look.subscriptions_count)}   "
        f"connections {peers or 'none'}",
        width,
    )


def _table(rows: Sequence[TopicFigures], width: int) -> list[str]:
    """As many columns as there is room for; the name takes what is left of it."""
    columns = [("IN/S", 9), ("OUT/S", 9), ("LAG", 9)]
    for column in (("LETTERS", 8), ("SUBS", 5), ("EVENTS", 12), ("SIZE", 11)):
        if sum(size for _, size in columns) + column[1] + 16 <= width:
            columns.append(column)
    used = sum(size for _, size in columns)
    with_spark = width - used - SPARK - 2 >= NAME[1] + 8
    longest = max(len(row.name) for row in rows)
    room = width - used - (SPARK + 2 if with_spark else 0)
    name = max(min(longest, NAME[0], room), min(NAME[1], room), 5)
    heading = "TOPIC".ljust(name) + "".join(what.rjust(size) for what, size in columns)
    if with_spark:
        heading += "  LAST 30 S"
    lines = [click.style(_cut(heading, width), bold=True)]
    for row in rows:
        cells = _cells(row)
        line = _shortened(row.name, name).ljust(name)
        line += "".join(cells[what].rjust(size) for what, size in columns)
        if with_spark:
            line += "  " + spark(row.spark)
        line = _cut(line, width)
        busy = row.in_ or row.out or row.lag
        lines.append(line if busy else click.style(line, dim=True))
    return lines


def _cells(row: TopicFigures) -> dict[str, str]:
    return {
        "IN/S": number(row.in_) if row.in_ else "-",
        "OUT/S": number(row.out) if row.out else "-",
        "LAG": number(row.lag) if row.lag else "-",
        "LETTERS": number(row.dead_letters) if row.dead_letters else "-",
        "SUBS": number(row.subscriptions) if row.subscriptions else "-",
        "EVENTS": number(row.events),
        "SIZE": show.size(row.bytes),
    }


def number(value: float) -> str:
    """``7``, ``0.4``, ``1 234``, ``12.3 M``: never wider than eight characters."""
    if 0 < value < 10 and value != int(value):
        return f"{value:.1f}"
    if value < 1_000_000:
        return f"{value:,.0f}".replace(",", " ")
    units = iter("MGT")
    value, unit = value / 1_000_000, next(units)
    while value >= 999.95 and (larger := next(units, "")):
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"


def elapsed(seconds: float) -> str:
    """``42 s``, ``3 min``, ``2 h 5 min``, ``4 d 3 h``."""
    minutes, hours, days = (
        int(seconds // 60),
        int(seconds // 3600),
        int(seconds // 86400),
    )
    if minutes < 1:
        return f"{seconds:.0f} s"
    if hours < 1:
        return f"{minutes} min"
    if days < 1:
        return f"{hours} h {minutes % 60} min"
    return f"{days} d {hours % 24} h"


def spark(values: Sequence[float]) -> str:
    """One bar for each value, the largest the highest; a dot for nothing."""
    most = max(values, default=0)
    if most <= 0:
        return "·" * len(values)
    top = len(BARS) - 1
    return "".join(
        BARS[min(int(value / most * top + 0.5), top)] if value > 0 else "·"
        for value in values
    )


def _apart(left: str, right: str, width: int) -> str:
    left = printable(left)
    gap = width - len(left) - len(right)
    return left + " " * gap + right if gap > 0 else _cut(left, width)


def _cut(line: str, width: int) -> str:
    """A line that has no style yet; the server may have said anything."""
    return printable(line)[:width].rstrip()


def _shortened(name: str, width: int) -> str:
    shown = "".join(c if c.isprintable() else show.escaped(c) for c in name)
    return shown if len(shown) <= width else shown[: width - 1] + "…"
