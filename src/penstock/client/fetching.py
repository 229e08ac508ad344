"""Ranges of a topic as a server sends them: frames, verified before they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import InvalidBatch, RemoteProtocolError
from penstock.log import Batch
from penstock.model.event import Event
from penstock.wire.native import Fetched

# What is asked for at once; the server may send less. An answer that is more than the
# kernel takes at once costs the server two to three times as much.
FETCH_BYTES = 1 << 19


@dataclass(frozen=True, slots=True)
class Range:
    """Events of a topic that were asked for, or the first of them.

    batches: views of verified frames, with nothing outside the range; none is empty.
    next_offset: where to go on; the end of the range or of the topic when that is all.
    start_offset, end_offset: of the topic, when this was sent.
    """

    topic: str
    batches: list[Batch]
    next_offset: int
    start_offset: int
    end_offset: int

    def events(self) -> Iterator[Event]:
        """The events of all batches, in their order."""
        for batch in self.batches:
            yield from batch.events()


def checked(message: Fetched, topic: str, offset: int, end: int) -> Range:
    """What a server answered to a fetch; raises RemoteProtocolError if it is junk."""
    reached = offset
    batches: list[Batch] = []
    for frame in message.frames:
        batch = _received(topic, frame)
        header = batch.header
        if header.base_offset >= end or header.end_offset <= reached:
            raise _junk(f"a frame from {header.base_offset} to {header.end_offset}")
        if batches and header.base_offset < reached:
            raise _junk(f"a frame at {header.base_offset} behind one up to {reached}")
        reached = header.end_offset
        batches.append(batch)
    goes_on = min(reached, end) if batches else min(message.end_offset, end)
    if message.next != goes_on or goes_on < offset:
        raise _junk(f"next offset {message.next}, wanted {goes_on} from {offset} on")
    seen = [batch.since(offset).before(end) for batch in batches]
    return Range(
        topic,
        [batch for batch in seen if len(batch)],
        message.next,
        message.start_offset,
        message.end_offset,
    )


def _received(topic: str, frame: bytes) -> Batch:
    """The batch of a frame that is whole and right."""
    try:
        return Batch.received(topic, memoryview(frame))
    except InvalidBatch as error:
        raise _junk(str(error.value)) from None


def _junk(text: str) -> RemoteProtocolError:
    return RemoteProtocolError("native", f"Fetched: {text}")
