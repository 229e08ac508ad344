"""``penstock users usage``: what users of a running server have."""

from __future__ import annotations

import click

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    ask,
    ask_all,
    at_desk,
    json_option,
    server_options,
    show_rows,
)
from penstock.desk.views.users import UsagePage, UsageRow

_HEADINGS = (
    *("USER", "CONNECTIONS", "TOPICS", "SUBSCRIPTIONS", "STORED"),
    *("EVENTS/S", "BYTES/S", "WAITS"),
)


@click.command("usage")
@click.argument("name", metavar="[NAME]", required=False)
@server_options
@json_option("Print one JSON array.")
def usage(name: str | None, **_: object) -> None:
    """Show what users have, and what they may have at most.

    A number behind a / is the limit. WAITS is how long the user has to wait before it
    may publish more. Listed are users who have logged in since the server was started,
    or have made a topic or a subscription.

    \b
    Examples:
      penstock users usage
      penstock users usage anna
    """
    with at_desk() as desk:
        found = _all(desk) if name is None else _one(desk, name)
    show_rows(found, _HEADINGS, _cells, "no users")


def _one(desk: Asker, name: str) -> list[UsageRow]:
    return ask(desk, UsagePage, "users.usage", user=name).users


def _all(desk: Asker) -> list[UsageRow]:
    return ask_all(
        desk, UsagePage, "users.usage", lambda page: page.users, lambda row: row.user
    )


def _cells(row: UsageRow) -> tuple[str, ...]:
    limits = row.limits
    stored, rate = limits.get("stored_bytes"), limits.get("bytes_per_s")
    return (
        row.user,
        _of(str(row.connections), limits.get("connections")),
        _of(str(row.topics), limits.get("topics")),
        _of(str(row.subscriptions), limits.get("subscriptions")),
        show.size(row.stored_bytes)
        + ("" if stored is None else f"/{show.size(stored)}"),
        str(limits.get("events_per_s", "-")),
        "-" if rate is None else show.size(rate),
        f"{row.wait_s:.1f} s" if row.wait_s else "-",
    )


def _of(count: str, limit: int | None) -> str:
    return count if limit is None else f"{count}/{limit}"
