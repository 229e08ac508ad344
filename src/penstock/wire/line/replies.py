"""Everything the line protocol answers, word for word, with its line end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.wire.line.commands import Command, CommandWords

GREETING: Final = b"Successfully connected to message_broker\r\n"
ACKNOWLEDGED: Final = b"acknowledged from current session\r\n"
NO_MESSAGE: Final = b"no available message\r\n"
CONFIRM_ON: Final = b"confirm on\r\n"
CONFIRM_OFF: Final = b"confirm off\r\n"

# What follows the word of a command, and what it does.
_HELP: Final = (
    (
        Command.PUB,
        "<topic> <event>",
        'publish a JSON object: {"msg": "hi", "priority": 3}',
    ),
    (Command.SUB, "<topic>", "get its events from now on, highest priority first"),
    (Command.ACK, "<topic> <id>", "be done with an event, and get the next"),
    (Command.UNSUB, "<topic>", "get no more of them"),
    (Command.AS, "<name>", "be a subscriber that is remembered; before the first sub"),
    (Command.CONFIRM, "on", "have every event answered that is stored; or off"),
    (Command.WINDOW, "<n>", "get so many events ahead of their acks"),
    (Command.HELP, "", "this list"),
)


def help_text(words: CommandWords) -> bytes:
    """The commands, a line each."""
    rows = [(f"{words.said[one].decode()} {rest}", does) for one, rest, does in _HELP]
    width = max(len(command) for command, _ in rows)
    return "".join(f"{one.ljust(width)}  {does}\r\n" for one, does in rows).encode()


def subscribed(topic: str) -> bytes:
    return b"successfully subscribed to topic %b\r\n" % topic.encode()


def unsubscribed(topic: str) -> bytes:
    return b"successfully unsubscribe from topic %b\r\n" % topic.encode()


def acknowledged_from_logs(id: str) -> bytes:
    return b"acknowledged from logs ev_id=%b\r\n" % id.encode()


def no_event(id: str) -> bytes:
    return b"no_event_error: %b\r\n" % id.encode()


def not_a_subscriber(topic: str) -> bytes:
    return error(f"not a topic {topic} subscriber")


def no_topic(topic: str) -> bytes:
    return error(f"topic {topic} does not exist")


def published(topic: str, ids: Iterable[str], base_offset: int) -> bytes:
    """One line for each event, offsets counting from ``base_offset``."""
    head = f"published {topic} "
    lines = [f"{head}{id} {offset}\r\n" for offset, id in enumerate(ids, base_offset)]
    return "".join(lines).encode()


def published_each(
    topics: Iterable[str], ids: Iterable[str], offsets: Iterable[int]
) -> bytes:
    """One line for each event, of the topic at its place."""
    rows = zip(topics, ids, offsets, strict=True)
    return "".join(
        [f"published {name} {id} {at}\r\n" for name, id, at in rows]
    ).encode()


def subscriber(name: str) -> bytes:
    return b"subscriber %b\r\n" % name.encode()


def window(count: int) -> bytes:
    return b"window %d\r\n" % count


def error(text: str) -> bytes:
    """``text`` comes from many places: whatever it holds, this is one line."""
    return f"error: {text}\r\n".encode() if _fits(text) else error(_one_line(text))


def line_too_long(max_bytes: int) -> bytes:
    return error(f"line exceeds {max_bytes} bytes")


def _fits(text: str) -> bool:
    return "\n" not in text and "\r" not in text


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")
