"""The disk failed once, the log went on, then the power went: nothing confirmed is
lost, and nothing that failed comes back."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.testing import CrashDisk
from tests.unit.log.faults import FaultyFiles, journal_of, payloads
from tests.unit.log.scenes import TEN, add

UNSYNCED = TopicOptions(durability="os")
TIGHT = LogOptions(journal_file_bytes=1024)
LARGE = bytes(400)
# What the power leaves is drawn; the number in the name of a test repeats it.
SEEDS = pytest.mark.parametrize("seed", range(40))


@pytest.fixture
def disk() -> CrashDisk:
    return CrashDisk()


@pytest.fixture
def log(disk: CrashDisk) -> Log:
    """Topic t is synced at every commit, topic os when somebody asks for it."""
    log = Log.open("/data", TIGHT, files=disk)
    log.create_topic("t")
    log.create_topic("os", UNSYNCED)
    log.sync()
    return log


def fail(disk: CrashDisk, suffix: str, *calls: str) -> None:
    """Let these calls fail on paths that end so, until the disk is healed."""

    def fault(call: str, path: str) -> OSError | None:
        met = call in calls and path.endswith(suffix)
        return OSError(errno.EIO, "no", path) if met else None

    disk.fail(fault)


def heal(disk: CrashDisk) -> None:
    disk.fail(None)


def after_power(log: Log, disk: CrashDisk, seed: int) -> Log:
    log.abandon()
    return Log.open("/data", TIGHT, files=disk.crashed(Random(seed)))


@SEEDS
def test_what_a_start_found_is_on_disk_before_more_is_confirmed(
    log: Log, disk: CrashDisk, seed: int
) -> None:
    for _ in range(6):
        log.append("os", Columns([LARGE]))
        log.commit()
    log.abandon()
    log = Log.open("/data", TIGHT, files=disk)
    add(log, b"confirmed")

    log = after_power(log, disk, seed)

    assert payloads(log, "os") == [LARGE] * 6
    assert payloads(log, "t") == [b"confirmed"]
    assert not log.damages


@SEEDS
@pytest.mark.parametrize("call", ["write", "sync"])
def test_groups_that_waited_for_a_sync_outlive_one_that_cannot_be_taken_back(
    log: Log, disk: CrashDisk, call: str, seed: int
) -> None:
    waiting = log.append("os", Columns([b"waits"]))
    log.commit()
    log.append("t", Columns([b"failed"]))
    fail(disk, ".jnl", call, "truncate")
    with pytest.raises(WriteFailed):
        log.sync()
    heal(disk)
    add(log, b"confirmed")
    assert log.outcome(waiting.group) == "synced"

    log = after_power(log, disk, seed)

    assert payloads(log, "os") == [b"waits"]
    assert payloads(log, "t") == [b"confirmed"]
    assert not log.damages


@SEEDS
def test_a_failed_group_behind_unsynced_files_does_not_stand_before_the_next(
    log: Log, disk: CrashDisk, seed: int
) -> None:
    for _ in range(3):
        log.append("os", Columns([LARGE]))
        log.commit()
    ended = journal_of(log).unsynced_files()[0]
    log.append("t", Columns([b"failed"]))
    fail(disk, ended, "sync")
    with pytest.raises(WriteFailed):
        log.sync()
    heal(disk)
    add(log, b"confirmed")

    log = after_power(log, disk, seed)

    assert payloads(log, "os") == [LARGE] * 3
    assert payloads(log, "t") == [b"confirmed"]
    assert not log.damages


@SEEDS
@pytest.mark.parametrize(
    ("suffix", "call", "kept"),
    [
        (".seg", "remove", 3),
        ("t-1", "sync_directory", 3),
        (".seg", "truncate", 5),
        (".seg", "sync", 5),
    ],
)
def test_truncation_that_could_not_erase_at_once_stays_done(
    log: Log, disk: CrashDisk, suffix: str, call: str, kept: int, seed: int
) -> None:
    """Frames hold 0..4 and 5..9: at 3 the segment goes, at 5 it is cut."""
    add(log, *TEN[:5])
    add(log, *TEN[5:])
    log.checkpoint()
    fail(disk, suffix, call)
    log.truncate("t", kept)
    heal(disk)
    add(log, b"new")
    log.checkpoint()

    log = after_power(log, disk, seed)

    assert payloads(log, "t") == [*TEN[:kept], b"new"]
    assert not log.damages


@SEEDS
def test_compaction_whose_folder_was_not_synced_leaves_one_or_the_other(
    log: Log, disk: CrashDisk, seed: int
) -> None:
    for text in TEN:
        log.append("t", Columns([text], keys=[b"k"]))
        log.commit()
    log.roll("t")
    log.checkpoint()
    fail(disk, "t-1", "sync_directory")
    with pytest.raises(WriteFailed):
        log.compact("t")
    heal(disk)
    add(log, b"new")

    log = after_power(log, disk, seed)

    assert payloads(log, "t") in ([*TEN, b"new"], [TEN[9], b"new"])
    assert not log.damages


class DroppingFiles(FaultyFiles):
    """A failed sync of a segment drops its dirty pages, as ext4 does."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False
        self._on_disk: dict[str, bytes] = {}

    def sync(self, handle: int) -> None:
        path = self._paths[handle]
        length = os.fstat(handle).st_size
        if self.armed and path.endswith(".seg"):
            self.armed = False
            clean = self._on_disk.get(path, b"").ljust(length, b"\0")
            os.pwrite(handle, clean, 0)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        super().sync(handle)
        self._on_disk[path] = os.pread(handle, length, 0)


@pytest.mark.parametrize("stored", [0, 5], ids=["new segment", "grown segment"])
def test_no_checkpoint_trusts_pages_that_a_failed_sync_dropped(
    tmp_path: Path, stored: int
) -> None:
    files = DroppingFiles()
    options = LogOptions(tail_cache_bytes=0, journal_file_bytes=1024)
    log = Log.open(tmp_path, options, files=files)
    log.create_topic("t")
    for number, text in enumerate(TEN):
        if number == stored > 0:
            log.checkpoint()
        add(log, text)
    files.armed = True

    for _ in range(3):
        add(log, b"more")
        with suppress(WriteFailed):
            log.checkpoint()

    assert not files.armed
    log.abandon()
    with Log.open(tmp_path) as log:
        assert payloads(log, "t") == [*TEN, *[b"more"] * 3]
        assert not log.damages
