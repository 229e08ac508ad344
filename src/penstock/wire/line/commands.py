"""Command lines: words and how many of them, and the notation for all others.

A line is trimmed and split at single spaces into at most three parts. The first is
the command, in lower case; the number of parts must be right exactly. Everything else
is unknown and quoted back in the notation of Elixir, as the clients know it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

from penstock.errors import RemoteProtocolError


class Command:
    """The commands."""

    PUB: Final = b"pub"
    SUB: Final = b"sub"
    UNSUB: Final = b"unsub"
    ACK: Final = b"ack"
    AS: Final = b"as"
    CONFIRM: Final = b"confirm"
    WINDOW: Final = b"window"
    HELP: Final = b"help"


# Parts of a line of each command, its own word included.
ARITY: Final = {
    Command.PUB: 3,
    Command.SUB: 2,
    Command.UNSUB: 2,
    Command.ACK: 3,
    Command.AS: 2,
    Command.CONFIRM: 2,
    Command.WINDOW: 2,
    Command.HELP: 1,
}


class CommandWords:
    """What clients say for a command, where that is not its own word."""

    def __init__(
        self,
        *,
        pub: bytes = Command.PUB,
        sub: bytes = Command.SUB,
        unsub: bytes = Command.UNSUB,
        ack: bytes = Command.ACK,
    ) -> None:
        self.pub = pub
        self.ack = ack
        self.said = {command: command for command in ARITY} | {
            Command.PUB: pub,
            Command.SUB: sub,
            Command.UNSUB: unsub,
            Command.ACK: ack,
        }
        self.meant = {said: command for command, said in self.said.items()}
        """The command of each word."""
        self.of_runs = (pub + b" ", ack + b" ")


WORDS: Final = CommandWords()
MAX_PARTS = 3
_FIRST_LINES = 16
_LONG_LINE = 400
_FIRST_BYTE = itemgetter(slice(0, 1))

# Elixir shows as text what it can print (String.printable?), with these escapes,
# and cuts off behind so many characters or bytes.
_NOT_PRINTABLE = re.compile(
    "[^\a\b\t\n\v\f\r\x1b\x7f -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_ESCAPED = re.compile('["\\\\\a\b\t\n\v\f\r\x1b\x7f]|#(?={)')
_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "#": "\\#",
    "\a": "\\a",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\v": "\\v",
    "\f": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    "\x7f": "\\d",
}
_SHOWN_CHARACTERS = 4096
_SHOWN_BYTES = 50


def split(line: bytes) -> list[bytes]:
    """The parts of a line: one at least (empty, if the line is), three at most."""
    return line.strip().split(b" ", MAX_PARTS - 1)


def command_run(
    block: bytes, words: CommandWords = WORDS
) -> tuple[bytes, bytes, list[bytes]] | None:
    """Command, topic and the rest of lines that all begin like the first; or None.

    Only for commands of three parts. Nothing is said of the rests: if any of them is
    not good, ``split`` knows what its line really is. Short lines are found by two
    searches in all, nothing per line; long ones by their ends alone, as a search for
    more than one byte costs several times what it is to copy them.
    """
    if not block.startswith(words.of_runs):
        return None
    begin = block.index(b" ") + 1
    end = block.find(b" ", begin) + 1
    if end < begin + 2:
        return None
    prefix = block[:end]
    if block.find(b"\n", 0, _LONG_LINE) < 0:
        lines = block.split(b"\n")
        if lines.pop() or {line[:end] for line in lines} != {prefix}:
            return None
        rests = [line[end:] for line in lines]
    else:
        rests = block[end:-1].split(b"\n" + prefix)
        if len(rests) != block.count(b"\n"):
            return None
    return words.meant[prefix[: begin - 1]], prefix[begin:-1], rests


def ids_of(rests: list[bytes]) -> list[str] | None:
    """The ids of ``ack`` lines; None if one of them has to be looked at closer."""
    stripped = [rest.rstrip() for rest in rests]
    if b"" in stripped:
        return None
    try:
        return b"\n".join(stripped).decode().split("\n")
    except UnicodeDecodeError:
        return None


def publishes(
    lines: Sequence[bytes], start: int = 0, words: CommandWords = WORDS
) -> tuple[list[bytes], list[bytes], int]:
    """Topics and events of the ``pub`` lines from ``start`` on, and where they end.

    Takes lines while they are plain, which all honest ones are: no space in front,
    and an event that starts with ``{``. For any other line, an ill-formed ``pub``
    included, see ``split``.
    """
    topics: list[bytes] = []
    events: list[bytes] = []
    # More at once from step to step: what is split in vain is little beside the rest.
    size = _FIRST_LINES
    while start < len(lines):
        rows = [line.split(b" ", 2) for line in lines[start : start + size]]
        good = _plain(rows, words.pub)
        if good:
            _, some, more = zip(*rows[:good], strict=True)
            topics += some
            events += more
            start += good
        if good < len(rows):
            break
        size *= 2
    return topics, events, start


def _plain(rows: Sequence[Sequence[bytes]], pub: bytes) -> int:
    """How many of these lines are plain ``pub`` lines, up to the first that is not."""
    if {*map(len, rows)} == {3}:
        said, _, events = zip(*rows, strict=True)
        if said.count(pub) == len(rows) and {*map(_FIRST_BYTE, events)} == {b"{"}:
            return len(rows)
    for good, row in enumerate(rows):
        if len(row) < 3 or row[0] != pub or not row[2].startswith(b"{"):
            return good
    return len(rows)


def text(name: str, part: bytes) -> str:
    """A part as text; raises RemoteProtocolError if it is not UTF-8."""
    try:
        return part.decode()
    except UnicodeDecodeError as error:
        reason = f"{name} is not valid UTF-8 (byte {error.start})"
        raise RemoteProtocolError("line", reason) from None


def unknown(parts: Sequence[bytes]) -> bytes:
    """The answer to a line that is no command."""
    shown = ", ".join(map(_inspect, parts))
    return f"error: unknown command: [{shown}]\r\n".encode()


def _inspect(part: bytes) -> str:
    try:
        string = part.decode()
    except UnicodeDecodeError:
        return _inspect_bytes(part)
    if _NOT_PRINTABLE.search(string):
        return _inspect_bytes(part)
    shown = string[:_SHOWN_CHARACTERS]
    escaped = _ESCAPED.sub(lambda match: _ESCAPES[match[0]], shown)
    return f'"{escaped}"' + (" <> ..." if len(string) > _SHOWN_CHARACTERS else "")


def _inspect_bytes(part: bytes) -> str:
    shown = ", ".join(map(str, part[:_SHOWN_BYTES]))
    return f"<<{shown}" + (", ...>>" if len(part) > _SHOWN_BYTES else ">>")
