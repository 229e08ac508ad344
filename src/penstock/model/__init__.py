"""Words all packages use: event, topic name, generated ids."""

from __future__ import annotations

from penstock.model.event import MAX_PRIORITY, Event
from penstock.model.topic import MAX_TOPIC_NAME_BYTES, TopicName, topic_name

__all__ = [
    "MAX_PRIORITY",
    "MAX_TOPIC_NAME_BYTES",
    "Event",
    "TopicName",
    "topic_name",
]
