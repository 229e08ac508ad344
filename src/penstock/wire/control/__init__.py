"""The control session: a word that starts a stream, and the lines it consists of."""

from __future__ import annotations

from penstock.wire.control.session import (
    AGAIN,
    COMMANDS,
    GREETING,
    HELP,
    OTHER,
    START,
    STARTED,
    WOKEN,
    ended,
    failed,
    missing,
    tweets,
)

__all__ = [
    "AGAIN",
    "COMMANDS",
    "GREETING",
    "HELP",
    "OTHER",
    "START",
    "STARTED",
    "WOKEN",
    "ended",
    "failed",
    "missing",
    "tweets",
]
