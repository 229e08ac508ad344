"""``penstock sinks``: queries that write in epochs, and how far they are."""

from __future__ import annotations

import click

from penstock.cli import show
from penstock.cli.connect import (
    ask_all,
    at_desk,
    json_option,
    server_options,
    show_rows,
)
from penstock.desk.views.sinks import SinkPage, SinkRow

_HEADINGS = ("QUERY", "EPOCH", "EVENTS", "COMMITTED", "STAGED")


@click.group()
def sinks() -> None:
    """Look at queries that write to topics in epochs, each epoch once."""


@sinks.command("list")
@server_options
@json_option("Print one JSON array.")
def list_command(**_: object) -> None:
    """List the queries that write, and the last epoch of each.

    EVENTS is how many that epoch had; STAGED is what waits in memory to be committed.

    \b
    Example:
      penstock sinks list
    """
    with at_desk() as desk:
        found = ask_all(
            desk, SinkPage, "sinks", lambda page: page.sinks, lambda row: row.query
        )
    show_rows(found, _HEADINGS, _cells, "no sinks")


def _cells(row: SinkRow) -> tuple[str, ...]:
    return (
        row.query,
        "-" if row.epoch is None else str(row.epoch),
        "-" if row.events is None else str(row.events),
        "-" if row.at_ms is None else show.time(row.at_ms),
        show.size(row.staged_bytes),
    )
