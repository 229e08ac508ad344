"""``penstock topics``: the topics of a running server."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    as_json,
    ask,
    ask_all,
    at_desk,
    confirm,
    json_option,
    server_options,
    show_json,
    show_rows,
)
from penstock.cli.duration import Duration
from penstock.cli.output import say
from penstock.cli.subscriptions import lines_of as subscription_lines
from penstock.cli.topic_notes import COMMANDS
from penstock.desk.views.topics import TopicPage, TopicRow, TopicView

NAME = click.argument("name", metavar="TOPIC")
_HEADINGS = ("TOPIC", "OFFSETS", "EVENTS", "SIZE", "DURABILITY", "SUBSCRIPTIONS")


@click.group(invoke_without_command=True)
@server_options
@json_option("Print one JSON array.")
@click.option("--own", is_flag=True, help="Show Penstock's own topics as well.")
@click.pass_context
def topics(context: click.Context, /, *, own: bool, **_: object) -> None:
    """List the topics of a running server, or work on one.

    \b
    Examples:
      penstock topics
      penstock topics create orders --retention-age 604800
      penstock topics show orders
    """
    if context.invoked_subcommand is not None:
        return
    with at_desk() as client:
        found = _all(client, own=own)
    show_rows(found, _HEADINGS, _row, "no topics yet: publish something, or create one")


@topics.command("show")
@NAME
@server_options
@json_option("Print one JSON object.")
def show_command(name: str, **_: object) -> None:
    """Show a topic: its settings, priorities and subscriptions.

    \b
    Example:
      penstock topics show orders
    """
    with at_desk() as client:
        topic = ask(client, TopicView, "topics.show", name=name)
    if as_json():
        show_json(topic)
        return
    for line in _lines(topic):
        say(line)


@topics.command("create")
@NAME
@server_options
@json_option("Print one JSON object: the topic.")
@click.option(
    "--durability",
    type=click.Choice(["sync", "os"]),
    help="Confirm events when the disk has them, or the operating system.",
)
@click.option(
    "--retention-age", type=float, metavar="SECONDS", help="Forget older events."
)
@click.option(
    "--retention-bytes", type=int, metavar="BYTES", help="Forget what is beyond."
)
@click.option("--compact", is_flag=True, help="Keep the last event of each key.")
@click.option(
    "--expires", type=Duration(), help="Events expire after this time, such as 10m."
)
@click.option(
    "--dead-letter-expired",
    is_flag=True,
    help="What has expired undelivered becomes a dead letter.",
)
def create_command(
    name: str,
    durability: str | None,
    retention_age: float | None,
    retention_bytes: int | None,
    expires: float | None,
    *,
    compact: bool,
    dead_letter_expired: bool,
    **_: object,
) -> None:
    """Create a topic with settings of its own.

    What is left out is as the server's settings say. Publishing creates a topic, too.

    \b
    Examples:
      penstock topics create orders
      penstock topics create clicks --durability os --retention-bytes 1000000000
      penstock topics create codes --expires 10m --dead-letter-expired
    """
    with at_desk() as client:
        topic = ask(
            client,
            TopicView,
            "topics.create",
            name=name,
            durability=durability,
            retention_age_s=retention_age,
            retention_bytes=retention_bytes,
            compact=compact or None,
            **_expiry(expires, dead_letter_expired=dead_letter_expired),
        )
    if as_json():
        show_json(topic)
    else:
        say(f"created topic {name}")


@topics.command("delete")
@NAME
@server_options
@json_option("Print one JSON object: the topic as it was.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_command(name: str, *, yes: bool, **_: object) -> None:
    """Delete a topic, its events and its subscriptions, for good.

    Asks first on a terminal; elsewhere --yes is needed.

    \b
    Example:
      penstock topics delete old-orders --yes
    """
    with at_desk() as client:
        topic = ask(client, TopicView, "topics.show", name=name)
        events = show.count(topic.events, "event")
        others = show.count(topic.subscriptions, "subscription")
        confirm(f"Delete topic {name} with {events} and {others}?", yes=yes)
        gone = ask(client, TopicRow, "topics.delete", name=name)
    if as_json():
        show_json(gone)
    else:
        say(f"deleted topic {name} with {show.count(gone.events, 'event')}")


for command in COMMANDS:
    topics.add_command(command)


def _all(client: Asker, *, own: bool) -> list[TopicRow]:
    return ask_all(
        client,
        TopicPage,
        "topics",
        lambda page: page.topics,
        lambda row: row.name,
        own=own,
    )


def _row(topic: TopicRow) -> tuple[str, ...]:
    return (
        topic.name,
        f"{topic.start_offset}..{topic.end_offset}",
        str(topic.events),
        show.size(topic.bytes),
        topic.durability,
        str(topic.subscriptions),
    )


def _lines(topic: TopicView) -> Iterator[str]:
    kept = [
        f"for {topic.retention_age_s:g} s" if topic.retention_age_s else "",
        f"up to {show.size(topic.retention_bytes)}" if topic.retention_bytes else "",
        "the last event of each key" if topic.compact else "",
    ]
    yield from show.table(
        [
            ("topic", topic.name),
            ("offsets", f"{topic.start_offset}..{topic.end_offset}"),
            ("events", str(topic.events)),
            ("size", show.size(topic.bytes)),
            ("durability", topic.durability),
            ("kept", ", ".join(filter(None, kept)) or "everything"),
            ("expire", _expires(topic)),
            ("priorities", ", ".join(map(str, topic.levels))),
            ("schema", _schema(topic)),
            ("documented", "yes" if topic.documented else "no"),
            ("comments", str(topic.comments)),
        ]
    )
    if topic.readers:
        yield ""
        yield from subscription_lines(topic.readers)
    if topic.more_readers:
        yield f"… {topic.subscriptions} in all: penstock subscriptions"


def _expiry(expires_s: float | None, *, dead_letter_expired: bool) -> dict[str, object]:
    """Left out where it is not said: servers of before do not know the words."""
    said: dict[str, object] = {}
    if expires_s is not None:
        said["expires_s"] = expires_s
    if dead_letter_expired:
        said["dead_letter_expired"] = True
    return said


def _expires(topic: TopicView) -> str:
    if topic.expires_s is None:
        return "when their publishers say so"
    dead = ", and are dead letters then" if topic.dead_letter_expired else ""
    return f"after {topic.expires_s:g} s{dead}"


def _schema(topic: TopicView) -> str:
    if topic.schema_version is None:
        return "none"
    return f"version {topic.schema_version} {topic.schema_type}".rstrip()
