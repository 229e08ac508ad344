"""``penstock connections``: who is connected to a running server."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    ask,
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
        found = list(_all(client, gateway))
    show_rows(found, _HEADINGS, _cells, "no connections")


def _all(client: Asker, gateway: str | None) -> Iterator[ConnectionRow]:
    after, more = 0, True
    while more:
        page = ask(client, ConnectionPage, "connections", after=after, gateway=gateway)
        yield from page.connections
        more = page.more
        after = page.connections[-1].number if page.connections else after


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
