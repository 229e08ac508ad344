"""``penstock mqtt``: sessions of MQTT clients, and retained messages."""

from __future__ import annotations

import click

from penstock.cli import mqtt_text, show
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
from penstock.desk.views.retained import RetainedPage, RetainedRow, RetainedView
from penstock.desk.views.sessions import (
    MqttSessionPage,
    MqttSessionRow,
    MqttSessionView,
)

CLIENT = click.argument("client", metavar="NAME")
TOPIC = click.argument("topic", metavar="TOPIC")


@click.group()
def mqtt() -> None:
    """Look at sessions of MQTT clients and retained messages, or end them."""


@mqtt.command("sessions")
@click.option("--filter", "matching", metavar="FILTER", help="Only who hears of this.")
@click.option(
    "--state",
    type=click.Choice(["connected", "away"]),
    help="Only those whose clients are there, or are not.",
)
@server_options
@json_option("Print one JSON array.")
def sessions_command(matching: str | None, state: str | None, **_: object) -> None:
    """List the sessions of MQTT clients, with what they subscribe to.

    SINCE is when the client came, or went. EXPIRES is when the session ends if the
    client stays away. IN FLIGHT are packets that wait for an answer, to the client and
    from it. LAG is how many events the client has not answered for, on so many topics.

    \b
    Examples:
      penstock mqtt sessions
      penstock mqtt sessions --filter 'sensors/#' --state away
    """
    with at_desk() as desk:
        found = _sessions(desk, matching, state)
    if as_json():
        show_json(found)
    elif found:
        for line in mqtt_text.session_table(found):
            say(line)
    else:
        say("no sessions")


@mqtt.command("session")
@CLIENT
@server_options
@json_option("Print one JSON object.")
def session_command(client: str, **_: object) -> None:
    """Show the session of a client: filters, will, and topics with something owed.

    \b
    Example:
      penstock mqtt session thermometer-7
    """
    with at_desk() as desk:
        one = ask(desk, MqttSessionView, "mqtt.sessions.show", client=client)
    if as_json():
        show_json(one)
        return
    for line in mqtt_text.session_lines(one):
        say(line)


@mqtt.command("end")
@CLIENT
@server_options
@json_option("Print one JSON object: the session as it was.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def end_command(client: str, *, yes: bool, **_: object) -> None:
    """End the session of a client, with its subscriptions and all that is owed to it.

    A client that is connected is sent away; it may come back, with a new session. Its
    will is published. Asks first on a terminal; elsewhere --yes is needed.

    \b
    Example:
      penstock mqtt end thermometer-7 --yes
    """
    with at_desk() as desk:
        one = ask(desk, MqttSessionRow, "mqtt.sessions.show", client=client)
        filters = show.count(one.filters_count, "subscription")
        lag = show.count(one.lag, "unsettled event")
        confirm(f"End the session of {client} with {filters} and {lag}?", yes=yes)
        gone = ask(desk, MqttSessionRow, "mqtt.sessions.end", client=client)
    if as_json():
        show_json(gone)
    else:
        say(f"ended the session of {client}")


@mqtt.command("retained")
@click.argument("matching", metavar="[FILTER]", required=False)
@server_options
@json_option("Print one JSON array.")
def retained_command(matching: str | None, **_: object) -> None:
    """List retained messages, of all topics or of those that a filter matches.

    \b
    Examples:
      penstock mqtt retained
      penstock mqtt retained 'sensors/+/state'
    """
    with at_desk() as desk:
        found = _retained(desk, matching)
    if as_json():
        show_json(found)
    elif found:
        for line in mqtt_text.retained_table(found):
            say(line)
    else:
        say("no retained messages")


@mqtt.command("message")
@TOPIC
@server_options
@json_option("Print one JSON object; the payload is base64.")
def message_command(topic: str, **_: object) -> None:
    """Show the retained message of a topic, with the beginning of its payload.

    \b
    Example:
      penstock mqtt message sensors/7/state
    """
    with at_desk() as desk:
        one = ask(desk, RetainedView, "mqtt.retained.show", topic=topic)
    if as_json():
        show_json(one)
        return
    for line in mqtt_text.message_lines(one):
        say(line)


@mqtt.command("forget")
@TOPIC
@server_options
@json_option("Print one JSON object: the message as it was, without its payload.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def forget_command(topic: str, *, yes: bool, **_: object) -> None:
    """Retain the message of a topic no more.

    Who subscribes later does not get it. The event stays in its topic. Asks first on a
    terminal; elsewhere --yes is needed.

    \b
    Example:
      penstock mqtt forget sensors/7/state --yes
    """
    with at_desk() as desk:
        one = ask(desk, RetainedRow, "mqtt.retained.show", topic=topic)
        size = show.size(one.bytes)
        confirm(f"Forget the retained message of {topic}, {size}?", yes=yes)
        gone = ask(desk, RetainedRow, "mqtt.retained.forget", topic=topic)
    if as_json():
        show_json(gone)
    else:
        say(f"forgot the retained message of {topic}")


def _sessions(
    desk: Asker, matching: str | None, state: str | None
) -> list[MqttSessionRow]:
    return ask_all(
        desk,
        MqttSessionPage,
        "mqtt.sessions",
        lambda page: page.sessions,
        lambda row: row.client,
        matching=matching,
        state=state,
    )


def _retained(desk: Asker, matching: str | None) -> list[RetainedRow]:
    return ask_all(
        desk,
        RetainedPage,
        "mqtt.retained",
        lambda page: page.retained,
        lambda row: row.topic,
        matching=matching,
    )
