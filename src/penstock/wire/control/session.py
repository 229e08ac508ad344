"""Everything that is said at the control port, word for word, with its line end.

A tweet is one line: ``tweet: worker-N TEXT``. Events that have a message, as a change
of a stored tweet has its text, are shown by that, and a tweet as it came from its
source by its text; whatever else is in the topic is shown as it is. A terminal
is not to be driven by a tweet: whatever is no printable character becomes a space, and
several blanks become one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from penstock.wire.json_text import NOT_JSON

START: Final = b"twitter"
HELP: Final = b"help"
GREETING: Final = b"Type `twitter` to start processing SSE (from Twitter API)\r\n"
STARTED: Final = b"[Command] run :twitter\r\n"
OTHER: Final = b"[Command] run :other\r\n"
AGAIN: Final = b"[Command] already running :twitter\r\n"
WOKEN: Final = b"[Command] the stream rested: it begins now\r\n"

COMMANDS: Final = (
    b"twitter  start the stream if it rests, and show its tweets from now on\r\n"
    b"help     this list; closing the connection ends the show, not the stream\r\n"
)

# Most characters of a line: a tweet has 280.
MAX_TEXT: Final = 1024
# Of a payload that is shown as it is, no more is looked at.
_MAX_BYTES: Final = 4 * MAX_TEXT


class _Text(msgspec.Struct):
    text: str


class _Message(msgspec.Struct):
    tweet: _Text


class _Shown(msgspec.Struct):
    msg: str | None = None
    message: _Message | None = None


_decode = msgspec.json.Decoder(_Shown).decode


def tweets(payloads: Iterable[bytes], worker: int) -> bytes:
    """The lines of some events."""
    head = b"tweet: worker-%d " % worker
    return b"".join(head + _text(payload) + b"\r\n" for payload in payloads)


def failed(reason: str) -> bytes:
    return b"[Command] error: %b\r\n" % reason.encode()


def missing(what: str) -> bytes:
    return b"[Command] missing: %b\r\n" % what.encode()


def ended(reason: str) -> bytes:
    return b"[Command] end of the stream: %b\r\n" % reason.encode()


def _text(payload: bytes) -> bytes:
    try:
        found = _decode(payload)
    except NOT_JSON:
        return _line(payload[:_MAX_BYTES].decode(errors="replace"))
    if found.msg is not None:
        return _line(found.msg)
    if found.message is not None:
        return _line(found.message.tweet.text)
    return _line(payload[:_MAX_BYTES].decode(errors="replace"))


def _line(text: str) -> bytes:
    text = text[:MAX_TEXT]
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(text.split()).encode(errors="replace")
