"""What a data directory holds, as text."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.cli import show
from penstock.log import Stat, TopicOptions, TopicStat


def lines_of(stat: Stat) -> Iterator[str]:
    """The same for people."""
    journal = stat.journal
    writer = f"process {stat.writer_pid}" if stat.writer_pid else "none"
    checkpoint = "none"
    if stat.checkpoint_position is not None:
        checkpoint = f"at position {stat.checkpoint_position}"
    yield f"directory   {stat.directory}"
    yield f"writer      {writer}"
    yield f"synced      up to position {stat.synced_position}"
    yield f"checkpoint  {checkpoint}, {stat.checkpoints} kept"
    yield f"journal     {show.count(journal.files, 'file')}, {show.size(journal.bytes)}"
    yield f"damage      {show.count(len(stat.quarantined), 'quarantined range')}"
    yield from (f"  {damage}" for damage in stat.quarantined)
    yield f"topics      {len(stat.topics)}"
    if stat.topics:
        yield ""
        yield from show.table([_HEADINGS, *map(_row, stat.topics)])


_HEADINGS = (
    "TOPIC",
    "ID",
    "OFFSETS",
    "EVENTS",
    "SEGMENTS",
    "SIZE",
    "FIRST EVENT",
    "LATEST TIME",
    "OPTIONS",
)


def _row(topic: TopicStat) -> tuple[str, ...]:
    return (
        topic.name,
        str(topic.id),
        f"{topic.start_offset}..{topic.end_offset}",
        str(topic.events),
        str(topic.segments),
        show.size(topic.bytes),
        _time(topic.first_timestamp_ms),
        _time(topic.max_timestamp_ms),
        _changed(topic.options) or "-",
    )


def _time(timestamp_ms: int | None) -> str:
    return "-" if timestamp_ms is None else show.time(timestamp_ms)


def _changed(options: TopicOptions) -> str:
    """The options that are not the defaults."""
    defaults = msgspec.to_builtins(TopicOptions())
    return " ".join(
        f"{name}={value}"
        for name, value in msgspec.to_builtins(options).items()
        if value != defaults[name]
    )
