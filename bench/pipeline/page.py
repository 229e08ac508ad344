"""Puts the table of the pipeline between its own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers import page
from bench.rounds import Row

BEGIN, END = "<!-- measured pipeline: begin -->", "<!-- measured pipeline: end -->"
SECTION = f"""
## The pipeline

```
make bench-pipeline                               # all of it, forty minutes
make bench-pipeline BENCH_ARGS="--quick"          # short looks, some minutes
make bench-pipeline BENCH_ARGS="--only store"
make bench-pipeline BENCH_ARGS="--write-docs"     # renew the table below
```

Made-up tweets of 900 bytes, three in ten of them retweets, one in a thousand malformed,
the same ones in every run. All processes share the machine, and all writes are synced.
What is compared is measured in one run, over a minute after two minutes of warm-up, the
most over three.

- *tweets through all stages*: the processes of `penstock up`. First the source sends
  what is read, and is held while 30 000 tweets wait for Spark, or as much behind it:
  that is the most that goes through with a bounded lag. Then nine tenths of it are sent
  steadily for ten minutes, and the lag has to stay bounded by itself; then half of it.
  *Changes* are events in the topics `tweets`, `users` and `users_engagements`, each of
  which a subscriber has acknowledged. How long a tweet is on its way is counted from
  when the firehose has it until a look, four a second, says that it is acknowledged.
- *CPU of the stages*: of the first of these. *spark* is its driver, Java and all
  workers in Python; *store* all processes of PostgreSQL. CPU seconds are for a million
  tweets.
- *the query alone*: over a topic that is full already, into an empty store; nothing
  else runs but the store and the broker. Beside it one plain process of Python that
  does the same work with the same functions, without a checkpoint. CPU is that of
  Spark, or of the process.
- *on a standalone cluster*: `penstock pipeline run` over a full topic, a master and two
  workers with a core each, one of them in use or both. Driver, store and broker are on
  the same machine: the table says who had how many of its cores, and what that makes
  the limit. After two minutes to get warm, for a minute. CPU is that of executors and
  driver.
- *bulk writes*: 50 000 documents in bulks of 5 000; the loader is `COPY` into an empty
  table for PostgreSQL, `insert_many` for MongoDB. The best of three rounds each.

{BEGIN}
{END}
"""


def write(
    path: Path, machine: Mapping[str, str], rows: Sequence[Row], notes: Sequence[str]
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    page.write(path, machine, rows, notes, (SECTION, BEGIN, END))
