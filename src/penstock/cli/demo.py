"""``penstock demo``: the log at work, step by step, with real numbers."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from penstock.cli import show
from penstock.cli.demo_writer import PRODUCER, TOPIC
from penstock.cli.jsonl import line_of
from penstock.cli.messages import limited_to
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.log import Batch, Columns, Log, RecoveryReport, verify

AUDIT = "audit"
ORDERS = 60
BULK = 100_000
BATCH = 1_000
# Confirmations to wait for before the writer is killed.
CONFIRMED = 100


@click.command()
@click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Use this new directory and keep it. Default: a temporary one.",
)
def demo(data: Path | None) -> None:
    """See the log at work, in a few seconds.

    Appends to two topics as one group, kills a writing process with SIGKILL, flips a
    bit on disk, and shows what is still there. Everything it prints is measured or
    read back.
    """
    # What the log would warn of is what this shows.
    with limited_to(logging.CRITICAL), _directory(data) as directory:
        start_ms = int(time.time() * 1000) - ORDERS * 1000
        _append(directory, start_ms)
        _kill_a_writer(directory)
        _flip_a_bit(directory)
        _read(directory, start_ms)
    if data is not None:
        _say(f"The data stays in {data}; try: penstock log stat {data}")


@contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    if data is None:
        with tempfile.TemporaryDirectory(prefix="penstock-demo-") as name:
            yield Path(name)
        return
    if data.exists() and any(data.iterdir()):
        raise Refusal(f"{data} is not empty", "give --data a new directory")
    yield data


def _append(directory: Path, start_ms: int) -> None:
    _step("Two topics, one group: all of it is stored, or none of it")
    with Log.open(directory) as log:
        log.create_topic(TOPIC)
        log.create_topic(AUDIT)
        orders = [b'{"order":%d}' % number for number in range(ORDERS)]
        times = [start_ms + 1000 * number for number in range(ORDERS)]
        keys: list[bytes | None] = [b"customer-%d" % (n % 7) for n in range(ORDERS)]
        added = log.append_group(
            {
                TOPIC: Columns(orders, times, keys=keys),
                AUDIT: Columns([b"60 orders came in"], start_ms),
            }
        )
        group = added[TOPIC].group
        _say(
            f"{ORDERS} events for {TOPIC}, 1 for {AUDIT}: group {group} is "
            f"{log.outcome(group)}"
        )
        log.sync()
        _say(f"after sync: group {group} is {log.outcome(group)}, {_ends(log)}")
        _append_bulk(log, start_ms)


def _append_bulk(log: Log, start_ms: int) -> None:
    payload = b"x" * 100
    began = time.perf_counter()
    for _ in range(BULK // BATCH):
        log.append(AUDIT, Columns([payload] * BATCH, start_ms))
        log.commit(sync=False)
    log.sync()
    seconds = time.perf_counter() - began
    _say(
        f"{BULK} events of {len(payload)} bytes in batches of {BATCH}, and one sync: "
        f"{seconds:.2f} s"
    )


def _kill_a_writer(directory: Path) -> None:
    _step("A process that appends is killed with SIGKILL")
    command = [sys.executable, "-m", "penstock.cli.demo_writer", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        confirmed = [writer.stdout.readline() for _ in range(CONFIRMED)]
        writer.kill()
        # What it confirmed before it died may still be in the pipe.
        confirmed += [line for line in writer.stdout if line.endswith("\n")]
    if confirmed[-1] == "":
        raise Refusal("the writing process ended by itself", "see what it printed")
    last = int(confirmed[-1])
    _say(f"it confirmed {len(confirmed)} events, the last one at offset {last}")
    with Log.open(directory) as log:
        _say(f"recovered: {_recovered(log.report)}")
        found = [
            event.offset
            for batch in _batches(log, TOPIC)
            for event in batch.events()
            if event.producer == PRODUCER
        ]
        missing = set(range(ORDERS, last + 1)) - set(found)
        _say(
            f"of the {len(confirmed)} confirmed events {len(missing)} are missing; "
            f"{len(found)} of this process are there, each once: "
            f"{'yes' if len(set(found)) == len(found) else 'no'}"
        )


def _flip_a_bit(directory: Path) -> None:
    _step("A bit flips in the middle of a segment")
    segment = sorted((directory / "topics").glob(f"{AUDIT}-*/*.seg"))[0]
    data = bytearray(segment.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 1
    segment.write_bytes(data)
    _say(f"flipped bit 0 of byte {middle} of {segment.relative_to(directory)}")
    with Log.open(directory) as log:
        for damage in log.damages:
            _say(f"found on start and quarantined: {damage}")
        readable = sum(len(batch) for batch in _batches(log, AUDIT))
        _say(f"{readable} of {log.topic(AUDIT).end_offset} events stay readable")
    result = verify(directory)
    _say(
        f"verify: {show.count(len(result.damages), 'damaged range')} in "
        f"{show.size(result.bytes)}"
    )


def _read(directory: Path, start_ms: int) -> None:
    _step("Reading from an offset, from a time, and as JSON lines")
    with Log.open(directory) as log:
        batch = log.read(TOPIC, 40)[0]
        _say(f"from offset 40: {show.count(len(batch), 'event')} in the first batch")
        half = start_ms + ORDERS * 500
        offset = log.offset_at(TOPIC, half)
        _say(f"from {show.time(half)}: begins at offset {offset}")
        for event in list(log.read(TOPIC, offset)[0].events())[:3]:
            click.echo(line_of(event), nl=False)


def _recovered(report: RecoveryReport) -> str:
    groups, size = show.count(report.groups, "group"), show.size(report.journal_bytes)
    replayed = f"{groups} ({size} of journal) replayed"
    return "; ".join([replayed, *map(str, report.cuts), *map(str, report.damages)])


def _batches(log: Log, topic: str) -> Iterator[Batch]:
    offset = log.topic(topic).start_offset
    while found := log.read(topic, offset):
        yield from found
        offset = found[-1].end_offset


def _ends(log: Log) -> str:
    ends = ((name, log.topic(name).end_offset) for name in (TOPIC, AUDIT))
    return ", ".join(f"{name} ends at offset {end}" for name, end in ends)


def _step(title: str) -> None:
    click.secho(f"\n{title}", bold=True)


def _say(text: str) -> None:
    say(f"  {text}")
