"""Reading Penstock's own topics for an answer: in both directions, and never too much.

All clients wait while the desk looks, so a look has a budget. Where it ends, the
answer says where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.log import BrokerLog

# Events looked at for one answer, and their bytes: about 20 ms of work.
MAX_SCAN = 10_000
MAX_SCAN_BYTES = 8 << 20
# Events read at once on the way back.
STEP = 100

ScannedEvent = tuple[int, bytes]


class Budget:
    """What may still be looked at for one answer; one event always may."""

    def __init__(self, events: int | None = None, size: int | None = None) -> None:
        self._events = MAX_SCAN if events is None else events
        self._bytes = MAX_SCAN_BYTES if size is None else size

    @property
    def spent(self) -> bool:
        return self._events <= 0 or self._bytes <= 0

    def spend(self, size: int) -> None:
        self._events -= 1
        self._bytes -= size


def forwards(
    log: BrokerLog, topic: str, start: int = 0, end: int | None = None
) -> Iterator[ScannedEvent]:
    """Offset and payload of the events from ``start`` on, in front of ``end``."""
    if not log.has_topic(topic):
        return
    known = log.topic(topic)
    offset = max(start, known.start_offset)
    end = known.end_offset if end is None else min(end, known.end_offset)
    while offset < end and (batches := log.read(topic, offset)):
        for batch in batches:
            for found in zip(batch.offsets(), batch.payloads(), strict=True):
                if found[0] >= end:
                    return
                yield found
        offset = batches[-1].end_offset


def backwards(
    log: BrokerLog, topic: str, before: int | None = None, start: int = 0
) -> Iterator[ScannedEvent]:
    """The events in front of ``before``, the newest first, down to ``start``."""
    if not log.has_topic(topic):
        return
    known = log.topic(topic)
    start = max(start, known.start_offset)
    end = known.end_offset if before is None else min(before, known.end_offset)
    while end > start:
        first = max(start, end - STEP)
        yield from reversed(list(forwards(log, topic, first, end)))
        end = first


def since(log: BrokerLog, topic: str, timestamp_ms: int | None) -> int:
    """The first offset that may be of that time or later."""
    if timestamp_ms is None or not log.has_topic(topic):
        return 0
    return log.offset_at(topic, timestamp_ms)
