"""``penstock flow``: which way events go, as text."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli import show
from penstock.cli.connect import (
    as_json,
    ask,
    at_desk,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.output import say
from penstock.desk.views.figures import Flow, FlowEdge

_HEADINGS = ("FROM", "", "TO", "EVENTS/S", "COUNT", "TYPES")
_ARROWS = {"publish": "->", "deliver": "->", "cause": "=>"}


@click.command()
@server_options
@json_option("Print one JSON object: nodes and edges.")
def flow(**_: object) -> None:
    """Show who publishes to which topic, who takes it, and which topics cause which.

    "=>" leads from the topic of parents to the topic of their children. Publishers and
    causes are found in samples of the newest events, so their rates are estimates.

    \b
    Examples:
      penstock flow
      penstock flow --json | jq .edges
    """
    with at_desk() as desk:
        found = ask(desk, Flow, "flow")
    if as_json():
        show_json(found)
        return
    for line in _lines(found):
        say(line)


def _lines(found: Flow) -> Iterator[str]:
    if not found.edges:
        yield "no events go anywhere"
        return
    edges = sorted(found.edges, key=lambda edge: (edge.kind != "publish", edge.from_))
    yield from show.table([_HEADINGS, *map(_cells, edges)])
    sampled = show.count(found.sampled.events, "event")
    yield f"publishers and causes are those of {sampled} looked at"
    if found.more:
        yield "there are more: these are the busiest"


def _cells(edge: FlowEdge) -> tuple[str, ...]:
    types = sorted((edge.types or {}).items(), key=lambda one: -one[1])
    return (
        _end(edge.from_),
        _ARROWS[edge.kind],
        _end(edge.to),
        f"{edge.rate:g}" if edge.rate else "-",
        str(edge.count),
        ", ".join(name for name, _ in types[:5]) or "-",
    )


def _end(id_: str) -> str:
    kind, _, name = id_.partition(":")
    return f"{kind} {show.preview(name.encode()) or '(unnamed)'}"
