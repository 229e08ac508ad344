"""What the desk tells of topics."""

from __future__ import annotations

from penstock.desk.views import View
from penstock.desk.views.subscriptions import SubscriptionRow


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
