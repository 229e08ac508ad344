"""The control session: a word that starts a stream, and the lines it consists of."""

from __future__ import annotations

from penstock.wire.control.session import (
    GREETING,
    OTHER,
    START,
    STARTED,
    ended,
    failed,
    tweets,
)

__all__ = ["GREETING", "OTHER", "START", "STARTED", "ended", "failed", "tweets"]
