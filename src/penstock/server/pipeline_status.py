"""What ``penstock up`` tells of its parts, in a file that it replaces every second."""

from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.desk.views.figures import Pipeline

# Longer ago than this: it is not running any more.
STALE_MS = 10_000
# A row is some hundred bytes: whatever is larger is not its file.
MAX_BYTES = 1 << 20

_decode = msgspec.json.Decoder(Pipeline).decode
NOT_RUNNING = Pipeline(running=False, stages=[], at_ms=None)


def pipeline_status(path: str | None, now_ms: int) -> Pipeline:
    """The stages as they were told last; none if nobody tells."""
    if path is None:
        return NOT_RUNNING
    try:
        with Path(path).open("rb") as file:
            told = _decode(file.read(MAX_BYTES))
    except (OSError, msgspec.DecodeError):
        return NOT_RUNNING
    fresh = told.at_ms is not None and now_ms - told.at_ms < STALE_MS
    return msgspec.structs.replace(told, running=told.running and fresh)
