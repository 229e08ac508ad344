"""``penstock subscriptions``: who reads what, and where they stand."""

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
)
from penstock.cli.output import say
from penstock.cli.start import start_of
from penstock.desk.views.subscriptions import (
    MovedSubscription,
    SubscriptionPage,
    SubscriptionRow,
    SubscriptionView,
)

SUBSCRIBER = click.argument("subscriber", metavar="SUBSCRIBER")
TOPIC = click.argument("topic", metavar="TOPIC")
_HEADINGS = (
    "SUBSCRIBER",
    "TOPIC",
    "STATE",
    "POSITION",
    "LAG",
    "IN FLIGHT",
    "CONSUMERS",
)


@click.group(invoke_without_command=True)
@server_options
@json_option("Print one JSON array.")
@click.option("--subscriber", metavar="NAME", help="Only those of this subscriber.")
@click.option("--topic", metavar="TOPIC", help="Only those of this topic.")
@click.pass_context
def subscriptions(
    context: click.Context, /, subscriber: str | None, topic: str | None, **_: object
) -> None:
    """List the subscriptions of a running server, or work on one.

    POSITION is the lowest offset that is not settled, LAG how many events are not.

    \b
    Examples:
      penstock subscriptions --topic orders
      penstock subscriptions show billing orders
      penstock subscriptions seek billing orders --to earliest
    """
    if context.invoked_subcommand is not None:
        return
    with at_desk() as client:
        found = _all(client, subscriber, topic)
    found.sort(key=lambda one: (one.subscriber, one.topic))
    if as_json():
        show_json(found)
    elif found:
        for line in lines_of(found):
            say(line)
    else:
        say("no subscriptions")


@subscriptions.command("show")
@SUBSCRIBER
@TOPIC
@server_options
@json_option("Print one JSON object.")
def show_command(subscriber: str, topic: str, **_: object) -> None:
    """Show a subscription: where it stands, its policy, what it owes.

    \b
    Example:
      penstock subscriptions show billing orders
    """
    with at_desk() as client:
        one = ask(
            client,
            SubscriptionView,
            "subscriptions.show",
            subscriber=subscriber,
            topic=topic,
        )
    if as_json():
        show_json(one)
        return
    for line in _lines(one):
        say(line)


@subscriptions.command("forget")
@SUBSCRIBER
@TOPIC
@server_options
@json_option("Print one JSON object: the subscription as it was.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(subscriber: str, topic: str, *, yes: bool, **_: object) -> None:
    """Remove a subscription with its position, for good.

    Its consumers are told that it ended. Asks first on a terminal; elsewhere --yes is
    needed.

    \b
    Example:
      penstock subscriptions forget billing orders --yes
    """
    which = {"subscriber": subscriber, "topic": topic}
    with at_desk() as client:
        one = ask(client, SubscriptionRow, "subscriptions.show", **which)
        lag = show.count(one.lag, "unsettled event")
        question = f"Forget the subscription of {subscriber} to {topic}, with {lag}?"
        confirm(question, yes=yes)
        gone = ask(client, SubscriptionRow, "subscriptions.forget", **which)
    if as_json():
        show_json(gone)
    else:
        say(f"forgot the subscription of {subscriber} to {topic}")


@subscriptions.command("seek")
@SUBSCRIBER
@TOPIC
@click.option(
    "--to",
    "start",
    required=True,
    metavar="WHERE",
    help="earliest, latest, an offset, or a time such as 2030-01-31T12:00Z.",
)
@server_options
@json_option("Print one JSON object.")
def seek_command(subscriber: str, topic: str, start: str, **_: object) -> None:
    """Move a subscription to another place of its topic.

    It goes on from there; what it still owed is forgotten.

    \b
    Examples:
      penstock subscriptions seek billing orders --to earliest
      penstock subscriptions seek billing orders --to 2030-01-31T12:00Z
    """
    with at_desk() as client:
        moved = ask(
            client,
            MovedSubscription,
            "subscriptions.seek",
            subscriber=subscriber,
            topic=topic,
            start=start_of(start),
        )
    if as_json():
        show_json(moved)
    else:
        say(f"{subscriber} goes on at offset {moved.position} of {topic}")


@subscriptions.command("resume")
@SUBSCRIBER
@TOPIC
@server_options
@json_option("Print one JSON object: the subscription as it is then.")
def resume_command(subscriber: str, topic: str, **_: object) -> None:
    """Let a subscription go on that was suspended, as its consumer did not answer.

    It waits for its next consumer. One that is not suspended stays as it is.

    \b
    Example:
      penstock subscriptions resume billing orders
    """
    with at_desk() as client:
        one = ask(
            client,
            SubscriptionRow,
            "subscriptions.resume",
            subscriber=subscriber,
            topic=topic,
        )
    if as_json():
        show_json(one)
    else:
        say(f"the subscription of {subscriber} to {topic} is {one.state}")


def lines_of(found: list[SubscriptionRow]) -> list[str]:
    """A table of subscriptions."""
    return show.table([_HEADINGS, *map(_row, found)])


def _all(
    client: Asker, subscriber: str | None, topic: str | None
) -> list[SubscriptionRow]:
    return ask_all(
        client,
        SubscriptionPage,
        "subscriptions",
        lambda page: page.subscriptions,
        lambda row: row.number,
        subscriber=subscriber,
        topic=topic,
    )


def _row(one: SubscriptionRow) -> tuple[str, ...]:
    return (
        one.subscriber,
        one.topic,
        one.state + (", temporary" if one.temporary else ""),
        str(one.position),
        str(one.lag),
        str(one.in_flight),
        str(one.consumers),
    )


def _pause(one: SubscriptionView) -> Iterator[tuple[str, str]]:
    if one.backoff_s is None:  # an older server does not tell
        return
    growth = f"times {one.backoff_factor:g}, at most {one.max_backoff_s:g} s"
    spread = f", spread by {one.jitter:g}" if one.jitter else ""
    pause = f"{one.backoff_s:g} s, then {growth}{spread}"
    yield "pause", pause if one.backoff_s else "none"


def _lines(one: SubscriptionView) -> Iterator[str]:
    timeout = "never" if one.ack_timeout_s is None else f"{one.ack_timeout_s:g} s"
    tries = "no limit" if one.tries is None else f"{one.tries}, then {one.exhausted}"
    yield from show.table(
        [
            ("subscriber", one.subscriber),
            ("topic", one.topic),
            ("state", one.state + (", temporary" if one.temporary else "")),
            ("position", str(one.position)),
            ("lag", str(one.lag)),
            ("in flight", str(one.in_flight)),
            ("owed", str(one.owed)),
            ("delayed", str(one.delayed)),
            ("expired", str(one.expired)),
            ("consumers", str(one.consumers)),
            ("order", one.order),
            ("window", str(one.window)),
            ("QoS", str(one.qos)),
            ("ack timeout", timeout),
            ("tries", tries),
            *_pause(one),
        ]
    )
    if one.deliveries:
        yield ""
        rows = [("OFFSET", "PRIORITY", "STAGE", "TRIES", "DUE", "LAST ERROR")]
        rows += [
            (
                str(owed.offset),
                "-" if owed.priority is None else str(owed.priority),
                owed.stage,
                str(owed.tries),
                "-" if owed.due_ms is None else show.time(owed.due_ms),
                show.preview(owed.errors[-1].encode()) if owed.errors else "-",
            )
            for owed in one.deliveries
        ]
        yield from show.table(rows)
    if one.more_deliveries:
        yield f"… {one.owed} in all"
