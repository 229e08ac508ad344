"""A process that appends as fast as it can and reports each confirmation.

    python -m tests.process.appender DIRECTORY inline|threaded|gathering

Every event of a topic is its own offset as text. A line ``topic end`` on standard
output says: everything of this topic in front of ``end`` is confirmed. It never ends
by itself: whoever started it kills it. While ``gathering``, events come one at a time,
segments get a frame for each, as versions before wrote them, and upkeep gathers these.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random

from penstock.errors import Backlogged
from penstock.log import (
    Columns,
    GroupCommit,
    Log,
    LogOptions,
    StoreWork,
    TopicOptions,
    store,
)
from tests.ungathered import as_they_came

TOPICS = ("orders", "Ünïcode/topic", "os")
# Small files, so that a second of work rolls, recycles and checkpoints many times.
OPTIONS = LogOptions(
    journal_file_bytes=200_000,
    checkpoint_bytes=300_000,
    write_out_bytes=50_000,
    direct_write_bytes=0,  # every write of a segment goes past the page cache
    tail_cache_bytes=50_000,
    group_bytes=100_000,
)


def main() -> None:
    directory, mode = sys.argv[1:]
    log = Log.open(directory, OPTIONS)
    for name in TOPICS:
        if name not in log.topics():
            log.create_topic(
                name,
                TopicOptions(
                    segment_bytes=15_000 if mode == "gathering" else 150_000,
                    durability="os" if name == "os" else "sync",
                ),
            )
    log.sync()
    random = Random(log.written)
    print("ready", flush=True)
    if mode == "inline":
        append_inline(log, random)
    elif mode == "gathering":
        append_and_gather(log, random)
    else:
        append_threaded(log, random)


def append_inline(log: Log, random: Random) -> None:
    while True:
        ends = append_some(log, random)
        log.sync()
        report(ends)


def append_and_gather(log: Log, random: Random) -> None:
    store.gathered = as_they_came  # type: ignore[attr-defined]
    while True:
        ends = append_some(log, random, [1])
        log.sync()
        report(ends)
        if random.random() < 0.02:
            log.maintain()


def append_threaded(log: Log, random: Random) -> None:
    """The next group collects while this one syncs, as a server does it."""
    commits, stores = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    commit: tuple[GroupCommit, Future[None], dict[str, int]] | None = None
    storing: tuple[StoreWork, Future[None]] | None = None
    ends: dict[str, int] = {}
    while True:
        if log.pending_bytes < OPTIONS.group_bytes:
            ends |= append_some(log, random)
        if commit is not None and (commit[1].done() or log.pending_bytes > 50_000):
            commit[1].result()
            error = log.end_commit(commit[0])
            assert error is None, error
            report(commit[2])
            commit = None
        if commit is None and (begun := log.begin_commit(sync=True)) is not None:
            commit = (begun, commits.submit(begun.run), ends)
            ends = {}
        if storing is not None and (storing[1].done() or log.unwritten_bytes > 9e4):
            storing[1].result()
            log.end_store(storing[0])
            storing = None
        if storing is None and (work := log.begin_store()) is not None:
            storing = (work, stores.submit(work.run))


def append_some(
    log: Log, random: Random, counts: Sequence[int] = (1, 1, 3, 50)
) -> dict[str, int]:
    """One atomic group of events for some topics; where they end then."""
    ends = {}
    batches = {}
    for name in random.sample(TOPICS, random.randint(1, len(TOPICS))):
        start = log.topic(name).next_offset
        ends[name] = start + random.choice(counts)
        texts = [b"%d" % offset for offset in range(start, ends[name])]
        batches[name] = Columns(texts, log.now_ms())
    try:
        log.append_group(batches)
    except Backlogged:
        return {}  # the segments are behind: nothing was taken in
    return ends


def report(ends: dict[str, int]) -> None:
    for name, end in ends.items():
        print(name, end, flush=True)


if __name__ == "__main__":
    main()
