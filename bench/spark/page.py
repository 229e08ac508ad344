"""Puts the table of Spark between its own two marks in docs/performance.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.peers import page
from bench.rounds import Row

BEGIN, END = "<!-- measured spark: begin -->", "<!-- measured spark: end -->"
SECTION = f"""
## Topics in Spark

```
make bench-spark                                  # all of it
make bench-spark BENCH_ARGS="--quick"             # a tenth of the work
make bench-spark BENCH_ARGS="--only batch json"
make bench-spark BENCH_ARGS="--write-docs"        # renew the table below
```

One session as `penstock.spark.session()` makes it, two cores, one Java process for
everything; contenders take turns in it, and each row is the median of three after a
first turn that is not counted. Where there is a broker, it is on the same two cores,
and so is who publishes. The CPU seconds are those of Spark with its Python workers,
without the broker's.

- *table from files*: 5 million events with JSON payloads of 200 bytes, a key and a time
  each, in frames of 1 000, read into `noop`. *Parquet* are the same rows as Spark
  writes them (Snappy), the same columns selected. *Tuples* is a data source in Python
  that reads the same files with the same code and hands over a tuple for every event,
  of the first million of them.
- *table over the network*: the same, from `penstock serve` on loopback.
- *JSON*: payloads of six fields, counted and summed by minute and country. `from_json`
  gets the schema of all six, and Spark has it parse those that are used. Sources in
  Python are not told which are: the option `columns` says it.
- *stream, topic to topic*: a query that copies a topic to another, every event synced
  when it is published and again when it is stored; what arrives in the other topic is
  counted. After a burst, the lag is 0 when everything has arrived and the broker says
  so of the subscription `spark:…`.
- *micro-batch latency*: from the call of `publish` until a consumer has the event from
  the sink topic. The floor is a stream of Spark with a source that makes up its rows
  and a sink that drops them, both in Python, in the same session.

{BEGIN}
{END}
"""


def write(
    path: Path, machine: Mapping[str, str], rows: Sequence[Row], notes: Sequence[str]
) -> None:
    """Renew what is between the marks; a page without them gets a section with them."""
    page.write(path, machine, rows, notes, (SECTION, BEGIN, END))
