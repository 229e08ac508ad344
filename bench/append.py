"""Appending in batches of 1 000 without sync, against writing the same bytes.

The plain contender writes the bytes of the same frames to one file with ``os.write``
and does nothing else. The log commits groups of about 1 MiB to its journal and writes
all events to the topic's segments too, in a second thread, as a server does; all of it
is inside the measured time. *Nothing synced* puts off checkpoints beyond the run;
*checkpoints* is the default, which syncs journal and segments every 64 MiB and so waits
for the disk. *Inline* is ``Log.commit`` after every batch, in one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bench.rounds import Row, Sample, Settings, Stopwatch, payloads, scratch, take_turns
from penstock.errors import Backlogged
from penstock.log import (
    Batch,
    Columns,
    Log,
    LogOptions,
    StoreWork,
    TopicOptions,
    frame_of,
)

NAME = "append"
BATCH = 1000
# Enough to fill several journal files and fall due for several checkpoints.
BYTES = 512_000_000
CASES = {"100 B": 100, "1 KiB": 1024}
TARGET = 0.5
UNSYNCED = TopicOptions(durability="os")
NO_CHECKPOINTS = LogOptions(checkpoint_bytes=1 << 40)
GROUP_BYTES = 1 << 20


def run(settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for case, size in CASES.items():
        rows += _case(settings, case, size)
    return rows


def _case(settings: Settings, case: str, size: int) -> list[Row]:
    events = payloads(BATCH, size)
    frame = frame_of(Columns(events), 0, bytes(16))
    count = settings.scaled(BYTES // len(frame))
    directory = settings.directory
    found = take_turns(
        {
            "os.write": lambda: _plain(directory, frame, count),
            "log, encoded, nothing synced": lambda: _log(
                directory,
                lambda: Batch.of("t", frame),
                count,
                len(frame),
                options=NO_CHECKPOINTS,
                threaded=True,
            ),
            "log, encoded, checkpoints": lambda: _log(
                directory,
                lambda: Batch.of("t", frame),
                count,
                len(frame),
                threaded=True,
            ),
            "log, encoded, inline": lambda: _log(
                directory, lambda: Batch.of("t", frame), count, len(frame)
            ),
            "log, Python lists, inline": lambda: _log(
                directory, lambda: Columns(events, _now_ms()), count, len(frame)
            ),
        },
        settings.rounds,
    )
    base = found["os.write"]
    return [_row(case, name, sample, base) for name, sample in found.items()]


def _row(case: str, name: str, sample: Sample, base: Sample) -> Row:
    ratio = sample.events_per_s / base.events_per_s
    judged = name == "log, encoded, nothing synced"
    return Row(
        benchmark=NAME,
        case=case,
        contender=name,
        rate=f"{sample.events_per_s / 1e6:.2f} M events/s, "
        f"{sample.mib_per_s:.0f} MiB/s",
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio="" if sample is base else f"{ratio:.2f}x of os.write",
        target=f"at least {TARGET}x" if judged else "",
        met=ratio >= TARGET if judged else None,
    )


def _plain(directory: Path, frame: bytes | bytearray, count: int) -> Sample:
    with scratch(directory) as folder:
        flags = os.O_WRONLY | os.O_CREAT
        handle = os.open(folder / "plain", flags, 0o644)
        try:
            watch = Stopwatch()
            for _ in range(count):
                os.write(handle, frame)
            return watch.stop(count * BATCH, count * len(frame))
        finally:
            os.close(handle)


def _log(
    directory: Path,
    make: Callable[[], Batch | Columns],
    count: int,
    size: int,
    *,
    options: LogOptions | None = None,
    threaded: bool = False,
) -> Sample:
    with scratch(directory) as folder, Log.open(folder, options) as log:
        log.create_topic("t", UNSYNCED)
        log.sync()
        watch = Stopwatch()
        (_append_threaded if threaded else _append_inline)(log, make, count)
        sample = watch.stop(count * BATCH, count * size)
        assert log.topic("t").end_offset == count * BATCH
        return sample


def _append_inline(log: Log, make: Callable[[], Batch | Columns], count: int) -> None:
    for _ in range(count):
        log.append("t", make())
        log.commit(sync=False)


def _append_threaded(log: Log, make: Callable[[], Batch | Columns], count: int) -> None:
    with ThreadPoolExecutor(1) as thread:
        stores = _Stores(log, thread)
        for _ in range(count):
            try:
                log.append("t", make())
            except Backlogged:
                stores.finish()
                stores.begin()
                log.append("t", make())
            if log.pending_bytes >= GROUP_BYTES:
                _commit(log)
                stores.begin()
        _commit(log)
        stores.finish()


def _commit(log: Log) -> None:
    commit = log.begin_commit(sync=False)
    if commit is not None:
        commit.run()
        log.end_commit(commit)


class _Stores:
    """Work on segments, one piece at a time, in a thread of its own."""

    def __init__(self, log: Log, thread: ThreadPoolExecutor) -> None:
        self._log = log
        self._thread = thread
        self._running: tuple[StoreWork, Future[None]] | None = None

    def begin(self) -> None:
        if self._running is not None:
            if not self._running[1].done():
                return
            self.finish()
        if (work := self._log.begin_store()) is not None:
            self._running = work, self._thread.submit(work.run)

    def finish(self) -> None:
        if self._running is not None:
            work, future = self._running
            future.result()
            self._running = None
            self._log.end_store(work)


def _now_ms() -> int:
    return int(time.time() * 1000)
