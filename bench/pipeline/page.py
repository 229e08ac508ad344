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
make bench-pipeline                               # all of it, under ten minutes
make bench-pipeline BENCH_ARGS="--quick"          # short looks, under three
make bench-pipeline BENCH_ARGS="--only store"
make bench-pipeline BENCH_ARGS="--write-docs"     # renew the table below
```

Made-up tweets of 900 bytes, three in ten of them retweets, the same ones in every run.
All processes share the machine, and all writes are synced. What is compared is measured
in one run.

- *tweets through all stages*: the processes of `penstock up`. First the source sends
  what is read, and is held while 20 000 tweets wait for Spark, or as much behind it:
  that is the most that goes through with a bounded lag. The rate is that of the slowest
  of the queries of Spark. Then nine tenths of it are sent steadily, and the lag has to
  stay bounded by itself. *Changes* are events in the topics `tweets`, `users` and
  `users_engagements`, each of which a subscriber has acknowledged.
- *CPU of the stages*: of the first of these. *spark* is its driver, Java and all
  workers in Python; *store* all processes of PostgreSQL. CPU seconds are for a million
  tweets.
- *the jobs alone*: the ceiling. The same queries over the same tweets in Parquet files,
  decoded already, into the same store, in batches of the same size; nothing else runs
  but the store and a broker for samples and counts of tags. Statistics are left out.
  The median of three after a first round that does not count, each from the end of its
  first batch until all queries have done all tweets. *From a full topic* is the same,
  with the topic in the place of the files. CPU is that of Spark.
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
