"""Where a subscription begins: words and numbers become offsets."""

from __future__ import annotations

from penstock.log import Log

TIME = "time:"


def resolved(log: Log, topic: str, start: str | int) -> int:
    """The offset that ``latest``, ``earliest``, an offset or ``time:<ms>`` means."""
    owner = log.topic(topic)
    if start == "latest":
        return owner.next_offset
    if start == "earliest":
        return owner.start_offset
    if isinstance(start, str) and start.startswith(TIME):
        return log.offset_at(topic, int(start[len(TIME) :]))
    return min(max(int(start), owner.start_offset), owner.next_offset)
