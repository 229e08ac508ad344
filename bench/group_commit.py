"""Group commit: 256 appenders of single events that each wait for the disk.

An appender is a number that waits in the list of its group and is put back to work
when that group's outcome is *synced*. Commits run in one thread, write-outs and
checkpoints in another; the next group collects while one is synced. Against it: one
``os.write`` and one ``os.fdatasync`` per event, on a growing file, as a program
without a group commit does it, and on a file of that length, which is cheaper.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bench.rounds import Row, Sample, Settings, Stopwatch, payloads, scratch, take_turns
from penstock.log import Columns, GroupCommit, Log, StoreWork, frame_of

NAME = "group commit"
APPENDERS = 256
CASES = {"100 B": 100, "1 KiB": 1024}
EVENTS = 200_000
SINGLES = 1_000
MIN_EVENTS_PER_SYNC = 50
MIN_RATIO = 20


def run(settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for case, size in CASES.items():
        rows += _case(settings, case, size)
    return rows


def _case(settings: Settings, case: str, size: int) -> list[Row]:
    directory = settings.directory
    events, singles = settings.scaled(EVENTS), settings.scaled(SINGLES)
    found = take_turns(
        {
            "fdatasync per event": lambda: _singles(directory, size, singles),
            "the same, file of full length": lambda: _singles(
                directory, size, singles, full_length=True
            ),
            "log, 256 appenders": lambda: _grouped(directory, size, events),
        },
        settings.rounds,
    )
    base = found["fdatasync per event"]
    return [_row(case, name, sample, base) for name, sample in found.items()]


def _row(case: str, name: str, sample: Sample, base: Sample) -> Row:
    judged = name.startswith("log")
    ratio = sample.events_per_s / base.events_per_s
    per_sync = sample.facts["events_per_sync"]
    rate = f"{sample.events_per_s:.0f} events/s, {per_sync:.0f} per fdatasync"
    met = ratio >= MIN_RATIO and per_sync >= MIN_EVENTS_PER_SYNC
    return Row(
        benchmark=NAME,
        case=case,
        contender=name,
        rate=rate,
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio="" if sample is base else f"{ratio:.1f}x of one by one",
        target=f"{MIN_RATIO}x, {MIN_EVENTS_PER_SYNC} per fdatasync" if judged else "",
        met=met if judged else None,
    )


def _singles(
    directory: Path, size: int, count: int, *, full_length: bool = False
) -> Sample:
    frame = frame_of(Columns(payloads(1, size)), 0, bytes(16))
    with scratch(directory) as folder:
        handle = os.open(folder / "plain", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if full_length:
                os.write(handle, bytes(count * len(frame)))
                os.fsync(handle)
                os.lseek(handle, 0, os.SEEK_SET)
            watch = Stopwatch()
            for _ in range(count):
                os.write(handle, frame)
                os.fdatasync(handle)
            return watch.stop(count, count * len(frame), events_per_sync=1)
        finally:
            os.close(handle)


def _grouped(directory: Path, size: int, count: int) -> Sample:
    with scratch(directory) as folder, Log.open(folder) as log:
        log.create_topic("t")
        log.sync()
        before = log.syncs
        with ThreadPoolExecutor(1) as commits, ThreadPoolExecutor(1) as stores:
            watch = Stopwatch()
            confirmed = _Publishers(log, payloads(1, size)[0], commits, stores).run(
                count
            )
            syncs = log.syncs - before
            return watch.stop(
                confirmed, confirmed * size, events_per_sync=confirmed / syncs
            )


class _Publishers:
    """Who waits for which group, and what runs in the two threads."""

    def __init__(
        self,
        log: Log,
        payload: bytes,
        commits: ThreadPoolExecutor,
        stores: ThreadPoolExecutor,
    ) -> None:
        self._log = log
        self._payload = payload
        self._commits = commits
        self._stores = stores
        self._waiting: dict[int, list[int]] = defaultdict(list)
        self._commit: tuple[GroupCommit, Future[None]] | None = None
        self._store: tuple[StoreWork, Future[None]] | None = None

    def run(self, count: int) -> int:
        """Publish until ``count`` events are confirmed; how many are."""
        confirmed, ready = 0, list(range(APPENDERS))
        while confirmed < count:
            self._publish(ready)
            self._begin()
            ready = self._end()
            # What was collected meanwhile goes off before anybody is woken.
            self._begin()
            confirmed += len(ready)
        while self._commit is not None:
            confirmed += len(self._end())
            self._begin()
        if self._store is not None:
            self._finish_store()
        return confirmed

    def _publish(self, ready: list[int]) -> None:
        now_ms = int(time.time() * 1000)
        for appender in ready:
            appended = self._log.append("t", Columns([self._payload], now_ms))
            self._waiting[appended.group].append(appender)

    def _begin(self) -> None:
        if self._commit is None and (commit := self._log.begin_commit()) is not None:
            self._commit = commit, self._commits.submit(commit.run)
        if self._store is not None and self._store[1].done():
            self._finish_store()
        if self._store is None and (work := self._log.begin_store()) is not None:
            self._store = work, self._stores.submit(work.run)

    def _end(self) -> list[int]:
        """The appenders of the group that was under way, once it is synced."""
        assert self._commit is not None
        commit, future = self._commit
        future.result()
        self._commit = None
        error = self._log.end_commit(commit)
        assert error is None and self._log.outcome(commit.number) == "synced"
        return self._waiting.pop(commit.number)

    def _finish_store(self) -> None:
        assert self._store is not None
        work, future = self._store
        future.result()
        self._store = None
        self._log.end_store(work)
        assert work.error is None
