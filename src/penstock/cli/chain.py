"""``penstock chain``: what caused an event, and what it caused, over all topics.

As a tree an event stands below every event that has the id of its parent; as ids need
not be unique and may go in circles, what was drawn once is only named from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import click
import msgspec

from penstock.chains.walk import Direction
from penstock.cli import show
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

PREVIEW_CHARACTERS = 60

_Place = tuple[str, int]


def tree(events: Sequence[ChainEvent]) -> list[str]:
    """One line an event, roots in the order of their time."""
    return list(_Drawing(events).lines())


class _Drawing:
    def __init__(self, events: Sequence[ChainEvent]) -> None:
        self._events = sorted(events, key=_order)
        self._effects: dict[str, list[ChainEvent]] = {}
        for event in self._events:
            if event.parent is not None:
                self._effects.setdefault(event.parent, []).append(event)
        self._ids = {event.id for event in events}
        self._drawn: set[_Place] = set()
        self._below: set[str] = set()
        """Ids whose effects were drawn."""

    def lines(self) -> Iterator[str]:
        roots = [one for one in self._events if one.parent not in self._ids]
        # In a circle nothing comes first: what was found furthest up does.
        others = sorted(self._events, key=lambda one: (one.level, *_order(one)))
        for event in [*roots, *others]:
            if _place(event) not in self._drawn:
                yield from self._from(event)

    def _from(self, root: ChainEvent) -> Iterator[str]:
        # A stack instead of recursion: chains may be longer than Python's.
        stack = [(root, "", "")]
        while stack:
            event, head, margin = stack.pop()
            again = _place(event) in self._drawn
            self._drawn.add(_place(event))
            yield head + _line(event, root, again=again)
            if again:
                continue
            effects = self._effects.get(event.id, [])
            if effects and event.id in self._below:
                yield f"{margin}└─ (what {_text(event.id)} caused is drawn above)"
                continue
            self._below.add(event.id)
            last = len(effects) - 1
            below = [
                (one, margin + "└─ ", margin + "   ")
                if index == last
                else (one, margin + "├─ ", margin + "│  ")
                for index, one in enumerate(effects)
            ]
            stack += reversed(below)


def _line(event: ChainEvent, root: ChainEvent, *, again: bool) -> str:
    mark = "▶ " if event.asked else ""
    place = f"{mark}{event.topic}:{event.offset}  {_text(event.id)}"
    if again:
        return f"{place}  (drawn above)"
    if event is root:
        when = show.time(event.timestamp)
        if event.parent is not None:
            when += f"  (caused by {_text(event.parent)})"
    else:
        when = _later(event.timestamp - root.timestamp)
    return f"{place}  {when}  {_preview(event)}".rstrip()


def _preview(event: ChainEvent) -> str:
    text = show.preview(event.payload)
    if len(text) > PREVIEW_CHARACTERS:
        return text[: PREVIEW_CHARACTERS - 1] + "…"
    return text + "…" if event.payload_bytes > len(event.payload) else text


def _later(ms: int) -> str:
    sign, ms = "-" if ms < 0 else "+", abs(ms)
    if ms < 1000:
        return f"{sign}{ms} ms"
    if ms < 60_000:
        return f"{sign}{ms / 1000:.3g} s"
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{sign}{minutes} min {seconds} s"
    return f"{sign}{hours} h {minutes} min"


def _place(event: ChainEvent) -> _Place:
    return event.topic, event.offset


def _order(event: ChainEvent) -> tuple[int, str, int]:
    return event.timestamp, event.topic, event.offset


def _text(id_: str) -> str:
    """An id is a client's word: nothing of it may reach the terminal as a command."""
    return show.preview(id_.encode())


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
