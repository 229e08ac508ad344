"""Events and frames of a topic, readable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import msgspec

from penstock.cli import show
from penstock.log import Batch, Column
from penstock.model.event import Event, values_of
from penstock.model.ids import event_id


class FrameLine(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a frame without looking at its events."""

    topic: str
    base_offset: int
    end_offset: int
    events: int
    bytes: int
    gaps: bool
    min_timestamp_ms: int
    max_timestamp_ms: int
    id_base: str
    columns: dict[str, int]


def events_of(batches: Iterable[Batch], limit: int | None) -> Iterator[Event]:
    """The events of all batches, at most ``limit``."""
    return islice(chain.from_iterable(batch.events() for batch in batches), limit)


def frame_of(batch: Batch) -> FrameLine:
    header = batch.header
    found = {column: batch.region(column) for column in Column}
    return FrameLine(
        topic=batch.topic,
        base_offset=header.base_offset,
        end_offset=header.end_offset,
        events=header.events,
        bytes=header.length,
        gaps=not batch.dense,
        min_timestamp_ms=header.min_timestamp_ms,
        max_timestamp_ms=header.max_timestamp_ms,
        id_base=event_id(header.id_base, 0),
        columns={
            column.name.lower(): len(region[1])
            for column, region in found.items()
            if region is not None
        },
    )


def frame_lines(frame: FrameLine) -> Iterator[str]:
    last = frame.end_offset - 1
    gaps = ", with gaps" if frame.gaps else ""
    columns = (f"{name} {show.size(size)}" for name, size in frame.columns.items())
    yield (
        f"frame of offsets {frame.base_offset}..{last}{gaps}: "
        f"{show.count(frame.events, 'event')}, {frame.bytes} bytes"
    )
    yield f"  time      {show.time(frame.min_timestamp_ms)} to " + show.time(
        frame.max_timestamp_ms
    )
    yield f"  id base   {frame.id_base}"
    yield f"  columns   {', '.join(columns)}"


def event_lines(event: Event) -> Iterator[str]:
    yield f"offset {event.offset}  {show.time(event.timestamp_ms)}"
    yield f"  id        {event.id}"
    for name, text in show.facts(values_of(event)):
        yield f"  {name:<9} {text}"
    size = show.count(len(event.payload), "byte")
    yield f"  payload   {size}: {show.preview(event.payload)}"
