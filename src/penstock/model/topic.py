"""Topic names: any text that UTF-8 can carry, within a limit."""

from __future__ import annotations

from typing import NewType

from penstock.errors import InvalidName

TopicName = NewType("TopicName", str)

# Long enough for any MQTT hierarchy seen in practice, short enough for a header.
MAX_TOPIC_NAME_BYTES = 1024


def topic_name(text: str) -> TopicName:
    """``text`` as a topic name; raises InvalidName if it cannot be one."""
    if not isinstance(text, str):  # a caller that does not check types
        raise InvalidName(str(text), f"is no text but of {type(text).__name__}")
    if not text:
        raise InvalidName(text, "is empty")
    if "\0" in text:
        raise InvalidName(text, "contains a NUL character")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidName(text, "is not valid Unicode text") from None
    if length > MAX_TOPIC_NAME_BYTES:
        raise InvalidName(text, f"has {length} bytes, limit {MAX_TOPIC_NAME_BYTES}")
    return TopicName(text)
