"""The event: one published message and its metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_PRIORITY = 255
# An id, or a name, is repeated on every ack line: it should fit there many times over.
MAX_ID_BYTES = 256
# A header: the payload is a JSON object, and this field of it is the message in it.
MESSAGE_FIELD = "message-field"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a topic. ``priority``: higher first. Times are milliseconds."""

    topic: str
    offset: int
    id: str
    timestamp_ms: int
    payload: bytes
    key: bytes | None = None
    priority: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    parent: str | None = None
    producer: str | None = None
