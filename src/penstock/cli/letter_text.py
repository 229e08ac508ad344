"""Dead letters, what became of them and who did it, as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from penstock.cli import show
from penstock.desk.views.audit import AuditRow
from penstock.desk.views.events import EventView, TryRow
from penstock.desk.views.letters import GroupRow, LetterRow, LetterView

# Of a reason, in a table.
REASON_CHARACTERS = 60
# Of a payload or a traceback, on a terminal.
MAX_LINES = 200

_HEADINGS = ("NUMBER", "TIME", "STATUS", "SUBSCRIBER", "EVENT", "TRIES", "REASON")
_GROUP_HEADINGS = (
    *("COUNT", "SUBSCRIBER", "TOPIC", "ERROR", "FIRST", "LAST", "EXAMPLE", "REASON"),
)
_AUDIT_HEADINGS = (
    *("TIME", "BY", "ACTION", "LETTERS", "SUBSCRIBER", "TOPIC", "REASON"),
)


def letter_table(found: Sequence[LetterRow]) -> list[str]:
    return show.table([_HEADINGS, *map(_letter_row, found)])


def group_table(found: Sequence[GroupRow]) -> list[str]:
    return show.table([_GROUP_HEADINGS, *map(_group_row, found)])


def audit_table(found: Sequence[AuditRow]) -> list[str]:
    return show.table([_AUDIT_HEADINGS, *map(_audit_row, found)])


def short(text: str) -> str:
    """The beginning of a text on one line, for a table."""
    line = show.preview(text.encode())
    if len(line) > REASON_CHARACTERS:
        line = line[: REASON_CHARACTERS - 1] + "…"
    return line


def ranges(numbers: Iterable[int]) -> str:
    """``0-99, 104``: neighbours together."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def letter_lines(letter: LetterView) -> Iterator[str]:
    """Everything about one letter."""
    yield from show.table(list(_facts(letter)))
    if letter.event is not None:
        yield ""
        yield "payload:"
        yield from payload_lines(letter.event.payload)
    elif letter.raw is not None:
        yield ""
        yield "raw input:"
        yield from payload_lines(letter.raw)
    elif letter.topic is not None:
        yield ""
        yield "payload: gone"
    for one in letter.failures:
        yield ""
        yield from try_lines(one)
    yield from _history(letter)


def _facts(letter: LetterView) -> Iterator[tuple[str, str]]:
    yield "number", str(letter.number)
    yield "status", letter.status
    yield "time", show.time(letter.at_ms)
    yield "gateway", letter.gateway
    yield "subscriber", letter.subscriber or "-"
    yield "reason", show.preview(letter.reason.encode())
    if letter.topic is None:
        return
    if letter.offset is None:
        yield "topic", letter.topic
        return
    edited = ", amended" if letter.amended else ""
    yield "event", f"offset {letter.offset} of {letter.topic}{edited}"
    yield "id", letter.id or "-"
    if letter.event is not None:
        yield from _event_facts(letter.event)
    if letter.event_from == "letter" and not letter.amended:
        yield "copy", "this letter has the only one, its topic has none any more"


def _event_facts(event: EventView) -> Iterator[tuple[str, str]]:
    yield "published", show.time(event.timestamp)
    yield from show.facts(msgspec.structs.asdict(event))


def payload_lines(payload: bytes) -> Iterator[str]:
    """JSON with its structure, text as it is, anything else in hexadecimal."""
    try:
        text = msgspec.json.format(payload, indent=2).decode()
    except (ValueError, RecursionError):
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            text = show.preview(payload)
    yield from text_lines(text)


def try_lines(one: TryRow) -> Iterator[str]:
    """When a try failed, and all it said."""
    took = "" if one.duration_s is None else f" after {one.duration_s:.3f} s"
    when = f" at {show.time(one.at_ms)}" if one.at_ms else ""
    yield f"try {one.tries}{when}{took}: {_error(one)}"
    if one.traceback:
        yield from text_lines(one.traceback)


def _error(one: TryRow) -> str:
    text = one.message if one.kind in ("", "Refused") else f"{one.kind}: {one.message}"
    return show.preview(text.encode())


def text_lines(text: str) -> Iterator[str]:
    """The lines of a text, indented, without what a terminal would obey."""
    lines = text.splitlines()
    for line in lines[:MAX_LINES]:
        yield "  " + "".join(c if c.isprintable() else show.escaped(c) for c in line)
    if len(lines) > MAX_LINES:
        yield f"  … {len(lines) - MAX_LINES} more lines; --json has all of it"


def _history(letter: LetterView) -> Iterator[str]:
    if letter.history_cut:
        yield ""
        yield 'the audit trail is long: see "penstock dead-letters audit"'
    for one in letter.history:
        yield ""
        because = f": {show.preview(one.reason.encode())}" if one.reason else ""
        by = show.preview((one.by or "somebody").encode())
        yield f"{one.action} by {by} at {show.time(one.at_ms)}{because}"
        if one.new is not None:
            yield "the payload was edited to:"
            yield from payload_lines(one.new)


def _letter_row(letter: LetterRow) -> tuple[str, ...]:
    return (
        str(letter.number),
        show.time(letter.at_ms),
        letter.status,
        letter.subscriber or f"({letter.gateway})",
        "raw input" if letter.topic is None else f"{letter.topic} {letter.offset}",
        str(letter.tries) if letter.tries else "-",
        short(letter.reason),
    )


def _group_row(group: GroupRow) -> tuple[str, ...]:
    return (
        str(group.count),
        group.subscriber or f"({group.gateway})",
        group.topic or "-",
        short(group.kind or "-"),
        show.time(group.first_ms),
        show.time(group.last_ms),
        str(group.example),
        short(group.pattern),
    )


def _audit_row(entry: AuditRow) -> tuple[str, ...]:
    return (
        show.time(entry.at_ms),
        show.preview((entry.by or "-").encode()),
        entry.action,
        short(ranges(entry.numbers)),
        entry.subscriber or "-",
        entry.topic or "-",
        short(entry.reason or "-"),
    )
