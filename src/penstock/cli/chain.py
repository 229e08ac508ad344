"""``penstock chain``: what caused an event, and what it caused, over all topics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import click
import msgspec

from penstock.chains.walk import Direction
from penstock.cli.chain_tree import tree
from penstock.cli.connect import (
    Asker,
    as_json,
    at_desk,
    carry_out,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.client.chains import Chain, chain, place_of
from penstock.client.plan import Plan
from penstock.desk.chains import DEPTH, EVENTS, MAX_DEPTH, MAX_EVENTS
from penstock.desk.views.chains import ChainEvent
from penstock.errors import UnknownEvent


@click.command("chain")
@click.argument("event", metavar="ID")
@click.option("--up", is_flag=True, help="Only what caused it.")
@click.option("--down", is_flag=True, help="Only what it caused.")
@click.option(
    "--whole", is_flag=True, help="Also what its causes caused beside it: all of it."
)
@click.option(
    "--depth",
    type=click.IntRange(0, MAX_DEPTH),
    default=DEPTH,
    show_default=True,
    help="Generations each way, at most.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_EVENTS),
    default=EVENTS,
    show_default=True,
    help="Events, at most.",
)
@server_options
@json_option("Print one JSON object: events, cut, behind.")
def chain_command(
    event: str,
    depth: int,
    limit: int,
    *,
    up: bool,
    down: bool,
    whole: bool,
    **_: object,
) -> None:
    """Draw the chain of the event ID: its causes, and what it caused.

    ID may also be a place, TOPIC:OFFSET. Several events with one ID are all shown.
    The event is marked by an arrow; times are given as distance from the first cause.

    \b
    Examples:
      penstock chain order-17
      penstock chain orders:5 --whole
      penstock chain order-17 --down --json | jq '.events | length'
    """
    if up and (down or whole):
        raise Refusal("--up excludes --down and --whole")
    direction: Direction = "up" if up else "down" if down and not whole else "both"
    ask = partial(chain, depth=depth, limit=limit, direction=direction, whole=whole)
    with at_desk() as desk:
        found = _found(desk, event, ask)
    if as_json():
        show_json(_row(found))
    else:
        for line in tree(found.events):
            say(line)
    _note(found)


def _found(desk: Asker, name: str, ask: Callable[..., Plan[Chain]]) -> Chain:
    """The chain of an id; if nothing has it, of TOPIC:OFFSET."""
    place = place_of(name)
    try:
        return carry_out(desk, ask(name))
    except UnknownEvent:
        if place is None:
            raise
    topic, offset = place
    return carry_out(desk, ask(topic=topic, offset=offset))


def _row(found: Chain) -> dict[str, object]:
    return {
        "events": [_event(one) for one in found.events],
        "cut": found.cut,
        "behind": found.behind,
    }


def _event(event: ChainEvent) -> dict[str, object]:
    """The event with its bytes as text, where they are."""
    row = msgspec.structs.asdict(event)
    for name in ("key", "payload"):
        value = row[name]
        if value is not None:
            row[name] = value.decode(errors="replace")
    return row


def _note(found: Chain) -> None:
    if found.cut is not None:
        text = f"note: there are more: cut at --{found.cut}"
        say(text, err=True)
    if found.behind:
        events = f"{found.behind} events are"
        say(f"note: {events} not indexed yet, and not looked at", err=True)
