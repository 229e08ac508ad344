"""Errors of write-back reach the log, though the kernel tells them once per handle."""

from __future__ import annotations

import errno
from contextlib import suppress
from random import Random

import pytest

from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions
from penstock.log.unsynced import MANY_FILES
from penstock.testing import CrashDisk

EAGER = LogOptions(write_out_bytes=0, start_check_bytes=0)


class WriteBackDisk(CrashDisk):
    """Tells of pages that it lost only to handles that were open then, once each.

    Those are handles of the file, and of folders, which ``sync_all`` is called with.
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
        for path in paths:
            self._names[path].unsynced.clear()
        for handle, inode in self._handles.items():
            if inode.directory or self._path_of(inode) in paths:
                self._told.add(handle)
        return paths

    def watches(self, path: str) -> bool:
        """Whether anybody has the file open."""
        return self._names[path] in self._handles.values()

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
        before = {path: self._names[path].durable for path in self._lost}
        super().sync_all(handle)
        for path, durable in before.items():  # clean pages: nothing is to be written
            self._names[path].durable = durable

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


def checkpointed(log: Log) -> None:
    """Take a checkpoint, as soon as every file has told of its error."""
    for _ in range(2 * MANY_FILES):
        with suppress(WriteFailed):
            log.checkpoint()
            return
    log.checkpoint()


def after_a_crash(log: Log, disk: CrashDisk, topic: str) -> list[list[bytes]]:
    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(3)))
    return [batch.payloads() for batch in again.read(topic, 0)]


@pytest.mark.parametrize("topics", [1, 3, MANY_FILES + 5])
def test_a_failed_write_back_fails_the_checkpoint(topics: int) -> None:
    disk = WriteBackDisk()
    log = written(disk, topics)
    assert disk.lose(".seg")

    with pytest.raises(WriteFailed):
        log.checkpoint()


@pytest.mark.slow
@pytest.mark.parametrize("topics", [1, 3, MANY_FILES + 5])
def test_the_next_checkpoint_has_all_of_it_on_disk(topics: int) -> None:
    disk = WriteBackDisk()
    log = written(disk, topics)
    disk.lose(".seg")

    checkpointed(log)

    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(3)))
    for number in range(topics):
        assert [b.payloads() for b in again.read(f"t{number}", 0)] == [[b"kept"]]


def test_a_file_that_nobody_watched_is_written_again() -> None:
    """It came when there was no room for its handle, and no way to sync all at once."""
    disk = WriteBackDisk()
    log = written(disk, MANY_FILES + 2)
    disk.lose(".seg")
    with pytest.raises(WriteFailed):
        log.checkpoint()
    log.create_topic("late")
    log.append("late", Columns([b"kept"], 1))
    log.sync()
    [path] = [one for one in disk.paths() if "late" in one and one.endswith(".seg")]
    assert not disk.watches(path)
    disk.lose(path)

    checkpointed(log)

    assert after_a_crash(log, disk, "late") == [[b"kept"]]


@pytest.mark.parametrize("topics", [1, MANY_FILES + 5])
def test_an_error_between_two_checkpoints_is_told_by_the_second(topics: int) -> None:
    """The handles of the first are gone; others were there before the next write."""
    disk = WriteBackDisk()
    log = written(disk, topics)
    log.checkpoint()
    for number in range(topics):
        log.append(f"t{number}", Columns([b"later"], 1))
    log.sync()
    disk.lose(".seg")

    with pytest.raises(WriteFailed):
        log.checkpoint()
    checkpointed(log)

    last = f"t{topics - 1}"
    assert after_a_crash(log, disk, last) == [[b"kept"], [b"later"]]


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
