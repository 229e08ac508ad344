"""The line protocol: ``pub``, ``sub``, ``unsub``, ``ack`` and a few more."""

from __future__ import annotations

from penstock.wire.line import replies
from penstock.wire.line.commands import (
    ARITY,
    Command,
    CommandWords,
    command_run,
    ids_of,
    publishes,
    split,
    text,
    unknown,
)
from penstock.wire.line.events import (
    Decoded,
    decode_event,
    decode_events,
    decode_mixed,
)
from penstock.wire.line.rendering import render_events

__all__ = [
    "ARITY",
    "Decoded",
    "Command",
    "CommandWords",
    "command_run",
    "decode_event",
    "decode_events",
    "decode_mixed",
    "ids_of",
    "publishes",
    "render_events",
    "replies",
    "split",
    "text",
    "unknown",
]
