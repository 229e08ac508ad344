"""``penstock publish``: one event, or one for each line."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import as_json, connected, json_option, server_options
from penstock.cli.duration import Duration
from penstock.cli.moment import MOMENT
from penstock.cli.output import StandardOutput, say
from penstock.cli.refusal import Refusal
from penstock.client import Client, Offsets
from penstock.wire.lines import TOO_LONG, LineSplitter

# Of a line that becomes an event; the server's limit counts as well.
MAX_LINE_BYTES = 64 << 20
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """What was said about the events, the same for all of them."""

    topic: str
    fields: dict[str, Any]
    """By the names of the columns; None is not said."""
    dedup_id: str | None


@click.command()
@click.argument("topic", metavar="TOPIC")
@click.argument("payload", metavar="[PAYLOAD]", required=False)
@click.option(
    "--file", metavar="FILE", help="Publish each line of FILE; - is standard input."
)
@click.option(
    "--priority",
    type=click.IntRange(0, 255),
    default=0,
    show_default=True,
    help="Higher goes first, where subscribers ask for it.",
)
@click.option("--id", "id_", metavar="TEXT", help="Id of the event. Default: made up.")
@click.option("--key", metavar="TEXT", help="Key of the events.")
@click.option(
    "--header", metavar="NAME=VALUE", multiple=True, help="A header; repeat for more."
)
@click.option("--parent", metavar="ID", help="Id of the event that caused these.")
@click.option(
    "--expires-in",
    type=Duration(),
    help="No longer deliver the events after this time, such as 10m.",
)
@click.option(
    "--at",
    type=MOMENT,
    metavar="WHEN",
    help="Deliver the events from then on, such as 2030-01-31T12:00Z.",
)
@click.option(
    "--in", "in_", type=Duration(), help="Deliver the events after this time."
)
@click.option(
    "--dedup-id",
    metavar="TEXT",
    help="Store the event once, however often it is published with this.",
)
@server_options
@json_option("Print one JSON object per event.")
def publish(
    topic: str,
    payload: str | None,
    file: str | None,
    priority: int,
    id_: str | None,
    key: str | None,
    header: tuple[str, ...],
    parent: str | None,
    expires_in: float | None,
    at: int | None,
    in_: float | None,
    dedup_id: str | None,
    **_: object,
) -> None:
    """Publish PAYLOAD, each line of a file, or each line of standard input.

    The bytes are stored as they are. The command ends when everything is durable; a
    line that is published is not published again if a later one fails.

    \b
    Examples:
      penstock publish orders '{"item": "tea"}' --priority 3
      penstock publish orders '{"item": "tea"}' --expires-in 10m
      penstock publish orders --file orders.jsonl
      tail -f app.log | penstock publish app-log
    """
    if payload is not None and file is not None:
        raise Refusal("PAYLOAD and --file exclude each other")
    if at is not None and in_ is not None:
        raise Refusal("--at and --in exclude each other")
    if payload is None and (id_ is not None or dedup_id is not None):
        raise Refusal("--id and --dedup-id are for a single PAYLOAD")
    said = EventOptions(
        topic=topic,
        fields={
            "priorities": priority or None,
            "ids": id_,
            "keys": None if key is None else os.fsencode(key),
            "headers": headers_of(header) or None,
            "parents": parent,
            "expires": _from_now(expires_in),
            "not_before": _from_now(in_) if at is None else at,
        },
        dedup_id=dedup_id,
    )
    batches = _lines(file) if payload is None else [[os.fsencode(payload)]]
    with connected() as client:
        _publish(client, said, batches)


def _from_now(after_s: float | None) -> int | None:
    return None if after_s is None else int((time.time() + after_s) * 1000)


def headers_of(texts: Iterable[str]) -> dict[str, str]:
    """``NAME=VALUE`` of each; raises Refusal."""
    headers = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Refusal(f"header {text!r} is not NAME=VALUE")
        headers[name] = value
    return headers


def _publish(
    client: Client, said: EventOptions, batches: Iterable[list[bytes]]
) -> None:
    count, last = 0, -1
    for payloads in batches:
        columns: dict[str, Any] = {
            name: [value] * len(payloads)
            for name, value in said.fields.items()
            if value is not None
        }
        if said.dedup_id is not None:
            columns["dedup_ids"] = [said.dedup_id]
        offsets = client.publish(said.topic, payloads, **columns)
        count, last = count + len(offsets), offsets[-1]
        if as_json():
            _show(said, offsets)
    if as_json():
        return
    where = f", last offset {last}" if count else ""
    say(f"published {show.count(count, 'event')} to {said.topic}{where}")


def _show(said: EventOptions, offsets: Offsets) -> None:
    rows = [
        {"topic": said.topic, "offset": offset, "id": offsets.id(index)}
        for index, offset in enumerate(offsets)
    ]
    StandardOutput().write(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    sys.stdout.flush()


def _lines(file: str | None) -> Iterator[list[bytes]]:
    """Lines as they come: the writer of a pipe must not wait for a full batch."""
    splitter = LineSplitter(MAX_LINE_BYTES)
    for data in _typed() if file in (None, "-") else _blocks(str(file)):
        lines = splitter.feed(data)
        if TOO_LONG in lines or splitter.overlong:
            raise Refusal(f"a line exceeds {MAX_LINE_BYTES} bytes")
        if lines:
            yield lines
    if splitter.rest:
        yield [splitter.rest]


def _typed() -> Iterator[bytes]:
    if sys.stdin.isatty():
        say("one event a line, Ctrl-D ends", err=True)
    # What is there, at once: it is a BufferedReader, whatever its annotation says.
    source = cast(BufferedReader, sys.stdin.buffer)
    while data := source.read1(READ_BYTES):
        yield data


def _blocks(file: str) -> Iterator[bytes]:
    with Path(file).open("rb", buffering=0) as source:
        if not _is_terminal():
            yield from iter(lambda: source.read(READ_BYTES), b"")
            return
        size = os.fstat(source.fileno()).st_size
        with click.progressbar(length=size, label="publishing", file=sys.stderr) as bar:
            while data := source.read(READ_BYTES):
                yield data
                bar.update(len(data))


def _is_terminal() -> bool:
    return sys.stderr.isatty()
