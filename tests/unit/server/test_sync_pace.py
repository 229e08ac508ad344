from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from penstock.log import Columns
from penstock.server.sync_pace import SMALL_COMMIT_BYTES, SyncPace
from penstock.testing import MemoryJournal
from tests.unit.log.faults import FaultyFiles
from tests.unit.server.scene import House, house, run

EVENT = Columns([b"x" * 100], 0)
LOOP = threading.main_thread().name
THREAD = "penstock-sync"
# No disk of a machine that runs tests takes so long.
PATIENT_S = 0.1


def fast(most_s: float = 0.001) -> SyncPace:
    """A pace that has seen a fast disk."""
    pace = SyncPace(most_s)
    for _ in range(10):
        pace.took(100, 0.0001)
    return pace


def test_nothing_is_expected_of_a_disk_that_was_not_seen_yet() -> None:
    pace = SyncPace(0.001)

    before = pace.is_short(1)
    pace.took(100, 0.0001)

    assert (before, pace.is_short(1)) == (False, False)


def test_small_commits_are_short_on_a_fast_disk_and_large_ones_are_not() -> None:
    pace = fast()

    assert pace.is_short(SMALL_COMMIT_BYTES)
    assert not pace.is_short(SMALL_COMMIT_BYTES + 1)


def test_large_commits_say_nothing_of_small_ones() -> None:
    pace = fast()

    pace.took(SMALL_COMMIT_BYTES + 1, 10.0)

    assert pace.is_short(1)


def test_one_sync_that_was_too_long_counts_at_once() -> None:
    pace = fast()

    pace.took(100, 0.0011)

    assert not pace.is_short(1)


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [(0.002, 2, 15), (0.02, 15, 40), (0.1, 30, 60), (60.0, 30, 60)],
)
def test_slow_syncs_are_forgotten_the_later_the_slower_they_were(
    seconds: float, least: int, most: int
) -> None:
    pace = fast()
    pace.took(100, seconds)

    count = 0
    while not pace.is_short(1):
        pace.took(100, 0.0001)
        count += 1

    assert least <= count <= most


def test_disk_that_stays_slow_is_never_waited_for() -> None:
    pace = fast()
    for _ in range(1000):
        pace.took(100, 0.0015)

        assert not pace.is_short(1)


def test_loop_that_may_not_wait_never_does() -> None:
    pace = fast(0.0)

    assert not pace.is_short(0)


# In the engine


class WatchedFiles(FaultyFiles):
    """Remembers which threads have synced, and how often anything was written."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []
        self.delay_s = 0.0

    def sync(self, handle: int) -> None:
        self.threads.append(threading.current_thread().name)
        time.sleep(self.delay_s)
        super().sync(handle)


async def publish(one: House, count: int, events: Columns = EVENT) -> list[str]:
    """Commit one publish after the other; the threads that have synced."""
    files = one.files
    assert isinstance(files, WatchedFiles)
    files.threads.clear()
    for _ in range(count):
        one.broker.publish("t", events)
        one.engine.kick()
        await one.until(lambda: one.engine.idle and not one.broker.urgent)
    return files.threads


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.unit.server.scene.FaultyFiles", WatchedFiles)


@pytest.mark.usefixtures("watched")
def test_small_commits_cross_no_thread_and_make_three_calls_of_the_file_system(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path, sync_wait_s=PATIENT_S) as one:
            assert THREAD in await publish(one, 10)
            submitted = []
            one.engine._syncer.submit = lambda *work: submitted.append(work)  # type: ignore[method-assign]
            one.files.calls.clear()

            threads = await publish(one, 50)

            assert threads == [LOOP] * 50
            assert submitted == []
            calls = [(call, Path(path).suffix) for call, path in one.files.calls]
            assert calls == [("write", ".jnl"), ("sync", ".jnl"), ("write", "")] * 50
            assert one.broker.log.topic("t").end_offset == 60

    run(scene())


@pytest.mark.usefixtures("watched")
def test_disk_that_becomes_slow_is_left_to_the_thread_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, sync_wait_s=PATIENT_S) as one:
            await publish(one, 10)
            assert isinstance(one.files, WatchedFiles)
            one.files.delay_s = 1.5 * PATIENT_S

            assert await publish(one, 3) == [LOOP, THREAD, THREAD]

            one.files.delay_s = 0.0
            await publish(one, 40)
            assert await publish(one, 3) == [LOOP] * 3

    run(scene())


@pytest.mark.usefixtures("watched")
def test_large_commits_and_those_that_begin_a_file_go_to_the_thread(
    tmp_path: Path,
) -> None:
    large = Columns([bytes(SMALL_COMMIT_BYTES)], 0)

    async def scene() -> None:
        async with house(tmp_path, sync_wait_s=PATIENT_S) as one:
            begun = await publish(one, 1)
            assert LOOP not in begun
            await publish(one, 10)

            assert await publish(one, 3, large) == [THREAD] * 3

    run(scene())


@pytest.mark.usefixtures("watched")
def test_without_a_time_to_wait_all_commits_go_to_the_thread(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            threads = await publish(one, 20)

            assert LOOP not in threads

    run(scene())


def test_journal_that_is_elsewhere_is_never_waited_for(tmp_path: Path) -> None:
    journal = MemoryJournal()
    seen: list[str] = []
    append = journal.append

    def noted(*group: object, **sync: bool) -> None:
        seen.append(threading.current_thread().name)
        append(*group, **sync)  # type: ignore[arg-type]

    journal.append = noted  # type: ignore[method-assign, assignment]

    async def scene() -> None:
        async with house(tmp_path, journal=journal, sync_wait_s=PATIENT_S) as one:
            for _ in range(20):
                one.broker.publish("t", EVENT)
                one.engine.kick()
                await one.until(lambda: one.engine.idle and not one.broker.urgent)
            await asyncio.sleep(0)

        assert set(seen) == {THREAD}

    run(scene())
