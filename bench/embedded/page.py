"""Puts the table between its own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers import page
from bench.rounds import Row

BEGIN, END = "<!-- measured embedded: begin -->", "<!-- measured embedded: end -->"
SECTION = f"""
## The embedded broker beside Python peers

```
make bench-embedded                               # all of it, some minutes
make bench-embedded BENCH_ARGS="--quick"          # a tenth of the work
make bench-embedded BENCH_ARGS="--only handle --systems Penstock Celery"
make bench-embedded BENCH_ARGS="--write-docs"     # renew the table below
```

Each contender has a process of its own, with its own servers and workers; they take
turns, and each row is the median of three. The CPU seconds are those of all of them
together: of the program that publishes or handles, of the broker, wherever it is, and
of the workers. Whatever has an event loop in Python runs on uvloop. A ratio below 1.5
proves nothing.

- *publish*: 64 tasks, each awaiting one event after the other. It is on disk when that
  returns, for every contender: Penstock syncs before it answers, Redis and Valkey have
  `appendfsync always`, NATS `sync_interval: always`. Penstock in the process has no
  socket to cross, which is the point of it; *over a URL* it has. Redis and Valkey have
  a connection for each task (redis-py with hiredis), NATS one for all. Celery's
  `delay` is a blocking call, made in 64 threads.
- *handle a backlog*: events are stored first, then the clock starts, and it stops when
  the broker has heard that the last of them is done. Handlers are empty. Penstock syncs
  what was settled. Its peers do not, they have what is usual for them: Redis
  `appendfsync everysec` unless the row says otherwise, NATS its defaults with file
  storage. All of them deliver at least once, and acknowledge after the handler.
  - *Celery*: Redis as the broker, `acks_late`, results ignored, events, gossip and rate
    limits off, 128 tasks prefetched for each process or thread. The worker is up before
    the clock starts.
  - *FastStream*: a durable consumer or a consumer group, 500 events a fetch, types not
    applied, no logging. With *push*, NATS sends without being asked, up to 10 000
    ahead of the acknowledgements.
- *CPU of handling*: *the log alone* is a plain loop over the same events: take up to
  4 096, count their tries, read payloads and ids, settle them, commit with a sync. What
  handling costs beyond that is events, calls, contexts, deadlines and the event loop.
- *replay*: a new subscriber gets a million events that were stored before. The files
  are in the page cache.

{BEGIN}
{END}
"""


def write(
    path: Path, machine: Mapping[str, str], rows: Sequence[Row], notes: Sequence[str]
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    page.write(path, machine, rows, notes, (SECTION, BEGIN, END))
