"""What the desk tells: plain rows that travel as they are and are shown as they are.

Times are milliseconds since 1970. A page that says ``more`` or ``next`` was cut: ask
again from there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

# Rows of one answer.
MAX_ROWS = 1000
Status = Literal["open", "republished", "dropped", "closed"]
State = Literal["connected", "away", "unsubscribed", "suspended"]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Root of all rows."""


class TopicRow(View, frozen=True, kw_only=True):
    """``events`` counts offsets: compaction may have taken some of them.

    ``number`` is another one when a topic is deleted and made again.
    """

    name: str
    number: int
    start_offset: int
    end_offset: int
    events: int
    bytes: int
    durability: str
    subscriptions: int


class TopicPage(View, frozen=True, kw_only=True):
    topics: list[TopicRow]
    more: bool


class SubscriptionRow(View, frozen=True, kw_only=True):
    """``position`` is the lowest offset not settled, ``lag`` how many are not.

    ``in_flight`` are with a consumer, ``owed`` also wait to be sent again.
    """

    number: int
    subscriber: str
    topic: str
    state: State
    temporary: bool
    position: int
    lag: int
    in_flight: int
    owed: int
    consumers: int


class SubscriptionPage(View, frozen=True, kw_only=True):
    subscriptions: list[SubscriptionRow]
    more: bool


class TopicView(TopicRow, frozen=True, kw_only=True):
    retention_age_s: float | None
    retention_bytes: int | None
    compact: bool
    segment_bytes: int
    segment_age_s: float | None
    expires_s: float | None = None
    dead_letter_expired: bool = False
    levels: list[int]
    """Priorities that occurred, highest first."""
    readers: list[SubscriptionRow]
    more_readers: bool
    schema_version: int | None
    """None: the topic has no schema."""
    schema_type: str
    documented: bool
    comments: int


class TopicOffset(View, frozen=True, kw_only=True):
    topic: str
    offset: int


class OwedRow(View, frozen=True, kw_only=True):
    offset: int
    priority: int | None
    """None: not looked at in log order."""
    tries: int
    stage: str
    due_ms: int | None
    errors: list[str]


class SubscriptionView(SubscriptionRow, frozen=True, kw_only=True):
    order: str
    window: int
    qos: int
    ack_timeout_s: float | None
    tries: int | None
    exhausted: str
    deliveries: list[OwedRow]
    more_deliveries: bool


class Moved(View, frozen=True, kw_only=True):
    """A subscription that was moved."""

    subscriber: str
    topic: str
    position: int


class EventView(View, frozen=True, kw_only=True):
    offset: int
    id: str
    timestamp: int
    priority: int
    key: bytes | None
    headers: dict[str, str]
    parent: str | None
    producer: str | None
    payload: bytes
    expires: int | None = None
    not_before: int | None = None


class LetterRow(View, frozen=True, kw_only=True):
    """``raw`` is the beginning of raw input that has ``raw_bytes``.

    ``kind`` is that of the last error; ``amended`` events were edited before.
    """

    number: int
    status: Status
    at_ms: int
    gateway: str
    reason: str
    kind: str | None
    topic: str | None
    offset: int | None
    id: str | None
    subscriber: str | None
    tries: int
    amended: bool
    raw: bytes | None
    raw_bytes: int


class LetterPage(View, frozen=True, kw_only=True):
    letters: list[LetterRow]
    next: int | None


class Done(View, frozen=True, kw_only=True):
    """What became of one letter: ``text`` says it, ``done`` whether it is as asked.

    ``fresh``: it was done now, not before.
    """

    number: int
    done: bool
    text: str
    fresh: bool = False


class DonePage(View, frozen=True, kw_only=True):
    results: list[Done]
    next: int | None


class LogEvent(View, frozen=True, kw_only=True):
    timestamp: int
    priority: int
    msg: bytes
    id: str


class SubscriberLog(View, frozen=True, kw_only=True):
    """Events a subscriber has not settled, highest priority first.

    ``unsettled`` is how many there are; ``cut`` says that not all of them are here.
    """

    subscriber: str
    unsettled: int
    cut: bool
    events: list[LogEvent]


class LogPage(View, frozen=True, kw_only=True):
    subscribers: list[SubscriberLog]
    more: bool
