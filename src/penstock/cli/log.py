"""``penstock log``: look into a data directory, whether or not a writer runs."""

from __future__ import annotations

import difflib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

import click
import msgspec

from penstock.cli import export as exporting
from penstock.cli import show
from penstock.cli.jsonl import line_of
from penstock.cli.messages import limited_to
from penstock.cli.output import StandardOutput, say, say_text, write_line
from penstock.cli.refusal import Refusal
from penstock.errors import OffsetOutOfRange, UnknownTopic
from penstock.log import (
    Batch,
    Column,
    Reader,
    Stat,
    StoredTopic,
    TopicOptions,
    TopicStat,
    VerifyResult,
    bytes_to_verify,
    stat_of,
    verify,
)
from penstock.model.event import Event, values_of
from penstock.model.ids import event_id


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


# Names listed when the topic asked for does not exist.
MAX_SUGGESTIONS = 5


@contextmanager
def opened(directory: str) -> Iterator[Reader]:
    """A reader of the directory; damage that it had to leave out is warned of."""
    with Reader.open(directory) as reader:
        yield reader
        for damage in reader.damages:
            say(f"warning: left out: {damage}", err=True)


def topic_of(reader: Reader, name: str) -> StoredTopic:
    """The topic, or a refusal that lists names like the one asked for."""
    try:
        return reader.topic(name)
    except UnknownTopic as error:
        raise Refusal(str(error), _suggestion(name, reader.topics())) from error


def batches_of(
    reader: Reader, topic: StoredTopic, start: int | None, stop: int | None
) -> Iterator[Batch]:
    """Batches of the offsets from ``start`` up to ``stop``, in bounded memory.

    Raises OffsetOutOfRange at once if ``start`` is none of the topic's.
    """
    first = topic.start_offset if start is None else start
    end = topic.end_offset if stop is None else min(stop, topic.end_offset)
    if not topic.start_offset <= first <= topic.end_offset:
        raise OffsetOutOfRange(topic.name, first, topic.start_offset, topic.end_offset)
    return _read(reader, topic.name, first, end)


def _read(reader: Reader, name: str, offset: int, end: int) -> Iterator[Batch]:
    while offset < end:
        found = reader.read(name, offset)
        if not found:
            return  # the rest is damaged
        for batch in found:
            part = batch.before(end)
            if len(part):
                yield part
        offset = found[-1].end_offset


def _suggestion(name: str, known: list[str]) -> str:
    if not known:
        return "this data directory has no topics"
    near = difflib.get_close_matches(name, known, MAX_SUGGESTIONS, 0.5)
    near += [other for other in known if name in other and other not in near]
    if near:
        return f"did you mean {', '.join(near[:MAX_SUGGESTIONS])}?"
    more = ", …" if len(known) > MAX_SUGGESTIONS else ""
    return f"its topics are {', '.join(known[:MAX_SUGGESTIONS])}{more}"


# How much of a topic "dump" shows unless told.
DUMP_COUNT = 20

DIRECTORY = click.argument("directory", metavar="DIR", type=click.Path())
TOPIC = click.argument("topic", metavar="TOPIC")
OFFSET = click.IntRange(min=0)


def json_option(help_: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--json", "as_json", is_flag=True, help=help_)


@click.group()
def log() -> None:
    """Look into a data directory.

    DIR is the directory that holds journal/ and topics/. These commands change
    nothing and take no lock: they work while a broker writes the directory, and
    then show what is synced.
    """


@log.command("stat")
@DIRECTORY
@json_option("Print one JSON object.")
def stat_command(directory: str, *, as_json: bool) -> None:
    """Show topics, offsets, segments and sizes.

    Also: who writes the directory, how far it is synced, the last checkpoint, and
    damage that was found and quarantined. Event counts come from the indexes.

    \b
    Examples:
      penstock log stat data
      penstock log stat data --json | jq '.topics[].events'
    """
    with opened(directory) as reader:
        found = stat_of(reader)
    if as_json:
        write_line(msgspec.json.encode(found))
        return
    for line in lines_of(found):
        say(line)


@log.command("dump")
@DIRECTORY
@TOPIC
@click.option("--from", "start", type=OFFSET, help="First offset. Default: the first.")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=DUMP_COUNT,
    show_default=True,
    help="How many events, or frames, to show.",
)
@click.option("--frames", is_flag=True, help="Show frames instead of events.")
@json_option("Print one JSON object per line.")
def dump_command(
    directory: str,
    topic: str,
    start: int | None,
    count: int,
    *,
    frames: bool,
    as_json: bool,
) -> None:
    """Show events of a topic with their metadata.

    Long payloads are shortened; with --json they are whole, and lines are those of
    "penstock log export". A frame is a batch of events as it lies on disk.

    \b
    Examples:
      penstock log dump data orders --from 1200 --count 5
      penstock log dump data orders --frames
    """
    with opened(directory) as reader:
        batches = batches_of(reader, topic_of(reader, topic), start, None)
        if frames:
            for batch, _ in zip(batches, range(count), strict=False):
                _show_frame(frame_of(batch), as_json=as_json)
            return
        for event in events_of(batches, count):
            if as_json:
                StandardOutput().write(line_of(event))
            else:
                say_text("\n".join(event_lines(event)))


@log.command("verify")
@DIRECTORY
@json_option("Print one JSON object.")
@click.pass_context
def verify_command(context: click.Context, directory: str, *, as_json: bool) -> None:
    """Check every checkpoint, journal group, frame and index.

    Exits with 0 if all is well, with 1 and the list of damage if not: file,
    position, bytes, reason, and the offsets that are lost. A torn tail that no start
    has cut off yet is listed too. Damage that was quarantined stays in the list until
    its report is removed from quarantine/.

    \b
    Examples:
      penstock log verify data
      penstock log verify data --json | jq '.damages[]'
    """
    # The list says it all; warnings beside it would say it twice.
    with limited_to(logging.ERROR):
        result = _verify(directory)
    if as_json:
        write_line(msgspec.json.encode(result))
    else:
        _show_result(result)
    if result.damages:
        context.exit(1)


@log.command("export")
@DIRECTORY
@TOPIC
@click.option(
    "--format",
    "format_",
    type=click.Choice(exporting.FORMATS),
    default="jsonl",
    show_default=True,
    help="JSON lines, Parquet, or an Arrow IPC file.",
)
@click.option("--out", metavar="FILE", help="Write here. Default: standard output.")
@click.option("--from", "start", type=OFFSET, help="First offset. Default: the first.")
@click.option("--to", "stop", type=OFFSET, help="Stop in front of this offset.")
def export_command(
    directory: str,
    topic: str,
    format_: exporting.Format,
    out: str | None,
    start: int | None,
    stop: int | None,
) -> None:
    """Write a topic as JSON lines, Parquet or Arrow.

    A JSON line has topic, offset, id, timestamp (milliseconds), priority, key,
    headers, parent, producer and payload. A payload that is JSON is embedded as it
    is, another one is a string; payload_encoding says which: json, text or base64.
    Likewise key_encoding: text or base64.

    FILE appears when it is complete; an export that is interrupted leaves nothing
    behind. Parquet and Arrow need the extra "penstock[arrow]".

    \b
    Examples:
      penstock log export data orders | jq .payload
      penstock log export data orders --format parquet --out orders.parquet
    """
    with opened(directory) as reader:
        found = topic_of(reader, topic)
        batches = batches_of(reader, found, start, stop)
        first = found.start_offset if start is None else start
        end = found.end_offset if stop is None else min(stop, found.end_offset)
        batches = exporting.with_progress(batches, max(end - first, 0))
        exporting.export(topic, batches, format_, out)


def _show_frame(frame: FrameLine, *, as_json: bool) -> None:
    if as_json:
        write_line(msgspec.json.encode(frame))
    else:
        say_text("\n".join(frame_lines(frame)))


def _verify(directory: str) -> VerifyResult:
    if not _is_terminal():
        return verify(directory)
    total = bytes_to_verify(directory)
    with click.progressbar(length=total, label="verifying", file=sys.stderr) as bar:
        return verify(directory, bar.update)


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _show_result(result: VerifyResult) -> None:
    for damage in result.damages:
        say(f"damaged: {damage}")
    looked = (
        f"{show.count(result.files, 'file')}, {show.size(result.bytes)}, "
        f"{show.count(result.frames, 'frame')}, {show.count(result.events, 'event')}"
    )
    if result.damages:
        say(f"{show.count(len(result.damages), 'damaged range')} in {looked}")
    else:
        say(f"all intact: {looked}")
