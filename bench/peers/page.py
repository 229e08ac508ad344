"""Puts the table of peers between its own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.report import HEADINGS, cells
from bench.rounds import Row

BEGIN, END = "<!-- measured peers: begin -->", "<!-- measured peers: end -->"
SECTION = f"""
## Beside its peers

```
make bench-peers                                  # all of it, about ten minutes
make bench-peers BENCH_ARGS="--quick"             # short runs, for a first look
make bench-peers BENCH_ARGS="--peers Penstock Redis --only publish latency"
make bench-peers BENCH_ARGS="--write-docs"        # renew the table below
```

One client for all: raw sockets in one process, every request made before the clock
starts, one publish command and one confirmation an event, replies counted and not
parsed. *Sink* is that client against a server that confirms everything at once and
keeps nothing. Contenders take turns; each row is the median of three. The CPU seconds
are those of the server's processes. A ratio below 1.5 proves nothing.

- *Penstock*: `penstock serve`, published over the line gateway with `confirm on`,
  consumed over the native gateway unless the row says otherwise. *os*: topics with that
  durability. Readers of the fan-out are line connections with a window, and acknowledge
  every event.
- *NATS JetStream*: file storage; *always* is `sync_interval: always`. End to end with a
  push consumer and explicit acks. Topics are subjects of one stream. Fan-out to
  ephemeral push consumers, without acks.
- *Redis Streams*, *Valkey Streams*: append-only file, `appendfsync` as named, no
  snapshots, no rewrites. `XREADGROUP` and `XACK`. Topics are keys. Fan-out to `XREAD`
  readers, without acks.
- *RabbitMQ*: durable queues, persistent messages, publisher confirms, one ack for many
  events. Fan-out through an exchange to a queue for each reader, with acks.

{BEGIN}
{END}
"""


def write(
    path: Path,
    machine: Mapping[str, str],
    rows: Sequence[Row],
    notes: Sequence[str],
    place: tuple[str, str, str] = (SECTION, BEGIN, END),
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    section, begin, end = place
    text = path.read_text()
    if begin not in text:
        text += section
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    parts = [
        _table(("machine", ""), machine.items()),
        _table(HEADINGS, map(cells, rows)),
        "\n".join(f"- {note}" for note in notes),
    ]
    middle = "\n\n".join(part for part in parts if part)
    path.write_text(f"{head}{begin}\n\n{middle}\n\n{end}{tail}")


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    table += ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join(table)
