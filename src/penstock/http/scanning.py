"""Looking through a topic from an offset on, or back from one, a little at a time.

A look begins where it is told to, by the index of the log, and never at the start of
the topic. Between two reads all other tasks have a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from penstock.http.event_filter import EventFilter, picked
from penstock.http.event_json import CUT_BYTES, events_json
from penstock.log import Batch, BrokerLog

# One read, and so about what is looked at between two turns of the loop.
READ_BYTES = 1 << 18
# Of an answer; one event always fits.
MAX_ANSWER_BYTES = 8 << 20
# Offsets in one step back: at first, and at most.
FIRST_STEP, MAX_STEP = 256, 4096
# About so much is read in one step back, and kept until it is shown.
MAX_STEP_BYTES = 16 << 20


@dataclass(slots=True, kw_only=True)
class Scanned:
    """What is wanted, and what was found of it so far."""

    event_filter: EventFilter
    limit: int
    max_scan: int
    whole: bool = False
    dry: bool = False
    """Whether it is only about how many there are."""
    events: list[bytes] = field(default_factory=list)
    scanned: int = 0
    size: int = 0

    @property
    def full(self) -> bool:
        return len(self.events) >= self.limit or self.size >= MAX_ANSWER_BYTES

    @property
    def spent(self) -> bool:
        return bool(self.event_filter) and self.scanned >= self.max_scan

    def views(self, batch: Batch) -> list[Batch]:
        """The wanted events of a batch."""
        if not self.event_filter:
            return [batch]
        return picked(batch, self.event_filter.indexes(batch))

    def shown(self, payload: bytes) -> int:
        """About how many bytes a payload takes in the answer."""
        return len(payload) if self.whole else min(len(payload), CUT_BYTES)

    def rendered(self, batch: Batch) -> list[bytes]:
        if self.dry:
            return [b""] * len(batch)
        return events_json(batch, None if self.whole else CUT_BYTES)


async def batches(
    log: BrokerLog, topic: str, start: int, end: int
) -> AsyncIterator[Batch]:
    """The events from ``start`` on, in front of ``end``, as views of batches.

    What retention takes meanwhile is left out. Raises UnknownTopic.
    """
    offset, number = start, log.topic(topic).id
    while offset < end:
        known = log.topic(topic)
        if known.id != number:  # another one of that name
            return
        offset = max(offset, known.start_offset)
        end = min(end, known.end_offset)
        found = [] if offset >= end else known.whole_batches(offset, READ_BYTES, end)
        for batch in found:
            for view in _parts(batch.since(offset).before(end)):
                yield view
                await asyncio.sleep(0)
        if not found:
            return
        offset = found[-1].header.end_offset


async def forwards(
    log: BrokerLog, topic: str, start: int, end: int, look: Scanned
) -> int:
    """Fill the look from ``start`` on; where to go on, ``end`` if that is all."""
    async for batch in batches(log, topic, start, end):
        rest = batch
        while len(rest):
            if look.full or look.spent:
                return rest.base_offset
            rest = _begin(rest, look)
    return end


async def backwards(
    log: BrokerLog, topic: str, start: int, end: int, look: Scanned
) -> int:
    """Fill the look with the last events in front of ``end``; where they begin.

    That is ``start`` if there are no more, or else where to go on.
    """
    step = max(FIRST_STEP, min(look.limit, MAX_STEP))
    while end > start and not (look.full or look.spent):
        low = max(start, end - _fewer(log, topic, step))
        views: list[Batch] = []
        async for batch in batches(log, topic, low, end):
            views += look.views(batch)
        look.scanned += end - low
        taken: list[bytes] = []
        while views and not look.full:
            view = _last(views.pop(), look, len(taken))
            rendered = look.rendered(view)
            taken[:0] = rendered
            look.size += sum(map(len, rendered))
            end = view.base_offset
            if len(taken) + len(look.events) >= look.limit:
                break
        look.events[:0] = taken
        if not look.full:
            end = low
        step = min(2 * step, MAX_STEP)
    return end


def _fewer(log: BrokerLog, topic: str, step: int) -> int:
    """A step of not too many bytes, if events are about as large as they mostly are."""
    known = log.topic(topic)
    size = known.bytes + known.unwritten_bytes
    events = known.end_offset - known.start_offset
    return max(1, min(step, MAX_STEP_BYTES * events // max(size, 1)))


def _begin(batch: Batch, look: Scanned) -> Batch:
    """Take a part of a batch into the look; what is left of the batch."""
    room = look.limit - len(look.events)
    most = look.max_scan - look.scanned if look.event_filter else room
    part = _part(batch, batch.lo, min(batch.hi, batch.lo + most))
    behind = part.hi
    for view in look.views(part):
        wanted = view.hi
        if not look.full:
            view.hi = view.lo + min(len(view), _fitting(view, look))
            look.events += (rendered := look.rendered(view))
            look.size += sum(map(len, rendered))
        else:
            view.hi = view.lo
        if view.hi < wanted:
            behind = view.hi
            break
    look.scanned += behind - part.lo
    return _part(batch, behind, batch.hi)


def _last(view: Batch, look: Scanned, taken: int) -> Batch:
    """As many of the last events of a view as there is room for."""
    room = look.limit - len(look.events) - taken
    lo = max(view.lo, view.hi - room)
    size, first = look.size, view.hi - 1
    sizes = _part(view, lo, view.hi).payloads()
    while first > lo and size + look.shown(sizes[first - lo]) < MAX_ANSWER_BYTES:
        size += look.shown(sizes[first - lo])
        first -= 1
    return _part(view, first, view.hi)


def _fitting(view: Batch, look: Scanned) -> int:
    """How many of the first events of a view there is room for; one at least."""
    room, size = look.limit - len(look.events), look.size
    for count, payload in enumerate(view.payloads()):
        if count >= room or (count and size > MAX_ANSWER_BYTES):
            return count
        size += look.shown(payload)
    return len(view)


def _parts(view: Batch) -> Iterator[Batch]:
    """A view in pieces of about one read: frames may be much larger."""
    header = view.header
    step = max(header.events * READ_BYTES // header.length, 1)
    for lo in range(view.lo, view.hi, step):
        yield _part(view, lo, min(lo + step, view.hi))


def _part(batch: Batch, lo: int, hi: int) -> Batch:
    return Batch(batch.topic, batch.body, batch.header, lo, hi)
