"""``penstock log``: look into a data directory, whether or not a writer runs."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import click
import msgspec

from penstock.cli import dump as dumping
from penstock.cli import export as exporting
from penstock.cli import show, stat
from penstock.cli.jsonl import line_of
from penstock.cli.messages import limited_to
from penstock.cli.output import StandardOutput, say, say_text, write_line
from penstock.cli.source import batches_of, opened, topic_of
from penstock.log import VerifyResult, bytes_to_verify, stat_of, verify

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
    for line in stat.lines_of(found):
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
                _show_frame(dumping.frame_of(batch), as_json=as_json)
            return
        for event in dumping.events_of(batches, count):
            if as_json:
                StandardOutput().write(line_of(event))
            else:
                say_text("\n".join(dumping.event_lines(event)))


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


def _show_frame(frame: dumping.FrameLine, *, as_json: bool) -> None:
    if as_json:
        write_line(msgspec.json.encode(frame))
    else:
        say_text("\n".join(dumping.frame_lines(frame)))


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
