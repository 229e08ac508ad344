"""What a data directory holds: gathered once, for the callers that show it."""

from __future__ import annotations

import os

import msgspec

from penstock.files import Files
from penstock.log import checkpoint as checkpoints
from penstock.log.batch import Batch
from penstock.log.damage import Damage
from penstock.log.layout import JOURNAL_SUFFIX, Layout
from penstock.log.lock import holder_pid, is_held
from penstock.log.options import TopicOptions
from penstock.log.reader import Reader
from penstock.log.tail import TailPart
from penstock.log.topic import Segment, TopicLog
from penstock.log.verification import quarantined


class TopicStat(msgspec.Struct, frozen=True, kw_only=True):
    """``bytes`` are in ``segments``; ``journal_events`` are still in the journal."""

    name: str
    id: int
    start_offset: int
    end_offset: int
    events: int
    journal_events: int
    segments: int
    bytes: int
    first_timestamp_ms: int | None
    max_timestamp_ms: int | None
    options: TopicOptions


class JournalStat(msgspec.Struct, frozen=True, kw_only=True):
    files: int
    bytes: int


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    directory: str
    writer_pid: int | None
    synced_position: int
    checkpoint_position: int | None
    checkpoints: int
    journal: JournalStat
    quarantined: list[Damage]
    topics: list[TopicStat]


def stat_of(reader: Reader) -> Stat:
    """Everything ``penstock log stat`` shows."""
    layout = Layout(reader.directory)
    kept = checkpoints.positions(Files(), layout)
    return Stat(
        directory=layout.directory,
        writer_pid=holder_pid(layout.lock) if is_held(layout.lock) else None,
        synced_position=reader.synced_position,
        checkpoint_position=kept[-1] if kept else None,
        checkpoints=len(kept),
        journal=_journal(layout),
        quarantined=quarantined(Files(), layout),
        topics=[_topic(reader, reader.topic(name)) for name in reader.topics()],
    )


def _journal(layout: Layout) -> JournalStat:
    sizes = [
        entry.stat().st_size
        for entry in os.scandir(layout.journal)
        if entry.name.endswith(JOURNAL_SUFFIX)
    ]
    return JournalStat(files=len(sizes), bytes=sum(sizes))


def _topic(reader: Reader, topic: TopicLog) -> TopicStat:
    waiting = topic.tail.unwritten()
    times = [topic.max_timestamp_of(segment) for segment in topic.segments]
    times += [part.latest_ms for part in waiting]
    in_journal = sum(_waiting(reader, topic, part) for part in waiting)
    in_segments = sum(_events(topic, segment) for segment in topic.segments)
    return TopicStat(
        name=topic.name,
        id=topic.id,
        start_offset=topic.start_offset,
        end_offset=topic.end_offset,
        events=in_segments + in_journal,
        journal_events=in_journal,
        segments=len(topic.segments),
        bytes=topic.bytes,
        first_timestamp_ms=_first_timestamp(reader, topic),
        max_timestamp_ms=max(times) if in_segments + in_journal else None,
        options=topic.options,
    )


def _events(topic: TopicLog, segment: Segment) -> int:
    """Events of a segment as its index counts them, without those trimmed."""
    if segment.base_offset >= topic.start_offset:
        return topic.index_of(segment).events
    return sum(
        len(Batch.whole(topic.name, found.header, found.body).since(topic.start_offset))
        for found in topic.frames_of(segment)
    )


def _waiting(reader: Reader, topic: TopicLog, part: TailPart) -> int:
    """Events of a part in the journal, without those trimmed."""
    start = topic.start_offset
    if part.base_offset >= start:
        return part.events
    if part.end_offset <= start:
        return 0
    return sum(map(len, reader.read(topic.name, start, 1)))


def _first_timestamp(reader: Reader, topic: TopicLog) -> int | None:
    found = reader.read(topic.name, topic.start_offset, 1)
    return found[0].timestamps()[0] if found else None
