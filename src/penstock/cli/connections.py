"""``penstock connections``: who is connected to a running server."""

from __future__ import annotations

import click

from penstock.cli import show
from penstock.cli.connect import (
    ask_all,
    connected,
    json_option,
    server_options,
    show_rows,
)
from penstock.desk.views.figures import ConnectionPage, ConnectionRow

_HEADINGS = ("GATEWAY", "PEER", "NAME", "SINCE", "IN", "OUT", "EVENTS/S", "CONSUMES")


@click.command()
@click.option("--gateway", metavar="NAME", help="Only those at this gateway.")
@server_options
@json_option("Print one JSON array.")
def connections(gateway: str | None, **_: object) -> None:
    """List who is connected to a running server, and what they consume.

    \b
    Examples:
      penstock connections
      penstock connections --gateway line --json
    """
    with connected() as client:
        found = ask_all(
            client,
            ConnectionPage,
            "connections",
            lambda page: page.connections,
            lambda row: row.number,
            gateway=gateway,
        )
    show_rows(found, _HEADINGS, _cells, "no connections")


def _cells(row: ConnectionRow) -> tuple[str, ...]:
    consumed = [
        f"{one.topic} ({one.in_flight} of {one.window} in flight, lag {one.lag})"
        for one in row.subscriptions
    ]
    return (
        row.gateway,
        row.peer or "-",
        show.preview(row.name.encode()) or "-",
        show.time(row.since_ms),
        show.size(row.bytes_in),
        show.size(row.bytes_out),
        f"{row.rate:g}" if row.rate else "-",
        ", ".join(consumed) or "-",
    )
