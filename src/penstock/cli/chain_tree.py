"""A chain as a tree of lines: causes above, effects below them and to the right.

An event stands below every event that has the id of its parent; as ids need not be
unique and may go in circles, what was drawn once is only named from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.cli import show
from penstock.desk.views.chains import ChainEvent

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
    """An id is anybody's word: nothing of it may reach the terminal as a command."""
    return show.preview(id_.encode())
