"""``penstock logs``: what each subscriber of a topic has not settled."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    as_json,
    ask_all,
    at_desk,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.output import say
from penstock.desk.logs import MAX_EVENTS
from penstock.desk.views.logs import LogEvent, LogPage, SubscriberLog
from penstock.wire.json_text import one_line


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event as the line protocol's logs have it."""

    timestamp: int
    priority: int
    msg: msgspec.Raw
    id: str


@click.command()
@click.argument("topic", metavar="TOPIC")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_EVENTS),
    default=MAX_EVENTS,
    show_default=True,
    help="Events of each subscriber, at most.",
)
@server_options
@json_option("Print one JSON object: subscriber, then its events.")
def logs(topic: str, limit: int, **_: object) -> None:
    """Show the events of TOPIC that each subscriber has not settled.

    The highest priority is first. Where there are more than --limit, a line on
    standard error says so.

    \b
    Examples:
      penstock logs orders --limit 10
      penstock logs orders --json | jq 'map_values(length)'
    """
    with at_desk() as client:
        found = _all(client, topic, limit)
    if as_json():
        show_json({one.subscriber: list(map(_event, one.events)) for one in found})
    elif found:
        for one in found:
            for line in _lines(one):
                say(line)
    else:
        say(f"{topic} has no subscribers")
    for one in found:
        if one.cut:
            shown = f"{len(one.events)} of {one.unsettled}"
            say(f"note: {one.subscriber}: {shown} are shown", err=True)


def _all(client: Asker, topic: str, limit: int) -> list[SubscriberLog]:
    return ask_all(
        client,
        LogPage,
        "logs",
        lambda page: page.subscribers,
        lambda row: row.subscriber,
        topic=topic,
        limit=limit,
    )


def _event(event: LogEvent) -> LoggedEvent:
    msg = msgspec.Raw(one_line(event.msg))
    return LoggedEvent(event.timestamp, event.priority, msg, event.id)


def _lines(one: SubscriberLog) -> Iterator[str]:
    yield f"{one.subscriber}: {show.count(one.unsettled, 'unsettled event')}"
    rows = [
        (
            f"  {event.priority}",
            event.id,
            show.time(event.timestamp),
            show.preview(event.msg),
        )
        for event in one.events
    ]
    if rows:
        yield from show.table([("  PRIORITY", "ID", "TIME", "MSG"), *rows])
