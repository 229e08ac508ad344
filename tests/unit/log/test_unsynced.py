"""Errors of write-back reach the log, though the kernel tells them once per handle."""

from __future__ import annotations

import errno
from random import Random

import pytest

from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions
from penstock.log.unsynced import MANY_FILES
from penstock.testing import CrashDisk

EAGER = LogOptions(write_out_bytes=0, start_check_bytes=0)


class WriteBackDisk(CrashDisk):
    """Tells of pages that it lost only to handles that were open then, once each.

    What it lost is in memory still, and stays off the disk until it is written again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: set[int] = set()
        self._lost: set[str] = set()
        self.most_open = 0

    def lose(self, suffix: str) -> list[str]:
        """The kernel tries to write back files of such names, and fails."""
        paths = [path for path in self.paths() if path.endswith(suffix)]
        self._lost.update(paths)
        self._told.update(self._handles)
        return paths

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self.most_open = max(self.most_open, len(self._handles))
        return handle

    def write(self, handle, buffers, position):
        self._lost.discard(self._path_of(self._handles[handle]))
        return super().write(handle, buffers, position)

    def sync(self, handle: int) -> None:
        self._tell(handle)
        inode = self._handles[handle]
        if self._path_of(inode) not in self._lost:
            super().sync(handle)

    def sync_all(self, handle: int) -> None:
        self._tell(handle)
        super().sync_all(handle)

    def close(self, handle: int) -> None:
        self._told.discard(handle)
        super().close(handle)

    def _tell(self, handle: int) -> None:
        if handle in self._told:
            self._told.discard(handle)
            raise OSError(errno.EIO, "write-back failed")


def written(disk: CrashDisk, topics: int = 1) -> Log:
    """A log whose events are in segments that are not synced."""
    log = Log.open("/data", EAGER, files=disk)
    for number in range(topics):
        log.create_topic(f"t{number}")
        log.append(f"t{number}", Columns([b"kept"], 1))
    log.sync()
    return log


@pytest.mark.parametrize("topics", [1, 3, MANY_FILES + 5])
def test_a_failed_write_back_fails_the_checkpoint(topics: int) -> None:
    disk = WriteBackDisk()
    log = written(disk, topics)
    assert disk.lose(".seg")

    with pytest.raises(WriteFailed):
        log.checkpoint()


@pytest.mark.parametrize("topics", [1, 3, MANY_FILES + 5])
def test_the_next_checkpoint_has_all_of_it_on_disk(topics: int) -> None:
    disk = WriteBackDisk()
    log = written(disk, topics)
    disk.lose(".seg")
    for _ in range(topics):  # each file tells it once
        try:
            log.checkpoint()
            break
        except WriteFailed:
            continue

    log.checkpoint()

    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(3)))
    for number in range(topics):
        assert [b.payloads() for b in again.read(f"t{number}", 0)] == [[b"kept"]]


def test_a_file_that_nobody_watched_is_written_again() -> None:
    """More files than handles were kept for, and then fewer by far."""
    disk = WriteBackDisk()
    log = written(disk, MANY_FILES + 2)
    watched = MANY_FILES
    disk.lose(".seg")
    disk._told.clear()  # somebody else has heard of it
    for number in range(watched):
        log.delete_topic(f"t{number}")

    log.checkpoint()

    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(3)))
    assert [b.payloads() for b in again.read(f"t{watched}", 0)] == [[b"kept"]]


def test_few_handles_are_kept_and_none_behind_a_checkpoint() -> None:
    disk = WriteBackDisk()
    log = written(disk, 2 * MANY_FILES)

    assert disk.most_open < MANY_FILES + 10
    log.checkpoint()
    assert len(disk._handles) < 5
    log.close()
    assert not disk._handles


def test_a_segment_that_goes_is_not_held_on_to() -> None:
    disk = WriteBackDisk()
    log = written(disk, 3)
    before = len(disk._handles)

    log.delete_topic("t1")

    assert len(disk._handles) == before - 1
    log.close()
