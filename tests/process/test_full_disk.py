"""A disk that fills up: in the journal, in a segment, in a checkpoint.

On a small file system of its own (a tmpfs mounted over one folder of the data
directory) where mounting is allowed, and by a limit on file sizes everywhere.
"""

from __future__ import annotations

import logging
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import DiskFull
from penstock.log import Columns, Log, LogOptions, TopicOptions

OPTIONS = LogOptions(
    journal_file_bytes=1 << 30,
    checkpoint_bytes=1 << 30,
    write_out_bytes=1 << 16,
    direct_write_bytes=0,
)
SMALL_JOURNAL = replace(OPTIONS, journal_file_bytes=1 << 15)
KIB = bytes(1024)
ROOM = 2 << 20


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A data directory with one folder on a file system of 2 MiB."""
    folder = tmp_path / "data" / str(request.param)
    Log.open(tmp_path / "data", OPTIONS).close()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("component: tmpfs mount (not permitted)")
    try:
        for name, data in kept.items():
            (folder / name).write_bytes(data)
        yield folder
    finally:
        # Lazily: a failed test may still hold a file there.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("small_disk", ["journal"], indirect=True)
def test_full_disk_in_the_journal_confirms_nothing_and_heals(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log.open(small_disk.parent, OPTIONS)
    log.create_topic("t")
    log.sync()
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(ROOM // 2))

    confirmed = append_until_full(log)
    refused_again = refused(log)
    ballast.unlink()
    confirmed += append(log, confirmed, 10)

    assert refused_again
    assert reports(caplog, "commit_failed") == 1
    check(log, confirmed)
    recheck(log, confirmed)


@pytest.mark.slow
@pytest.mark.parametrize("small_disk", ["topics"], indirect=True)
def test_full_disk_in_a_segment_keeps_events_in_the_journal_and_heals(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log.open(small_disk.parent, OPTIONS)
    log.create_topic("t", TopicOptions(segment_bytes=1 << 30))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(ROOM // 2))

    confirmed = append_until_full(log)
    check(log, confirmed)
    ballast.unlink()
    confirmed += append(log, confirmed, 100)

    assert reports(caplog, "write_out_failed") == 1
    check(log, confirmed)
    recheck(log, confirmed)


@pytest.mark.slow
@pytest.mark.parametrize("small_disk", ["checkpoints"], indirect=True)
def test_full_disk_in_a_checkpoint_loses_nothing_and_heals(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log.open(small_disk.parent, OPTIONS)
    log.create_topic("t")
    confirmed = append(log, 0, 100)
    ballast = small_disk / "ballast"
    fill(ballast)

    with pytest.raises(DiskFull):
        log.checkpoint()
    confirmed += append(log, confirmed, 100)
    check(log, confirmed)
    log.abandon()
    log = Log.open(small_disk.parent, OPTIONS)
    check(log, confirmed)
    ballast.unlink()
    log.checkpoint()

    assert reports(caplog, "write_out_failed") == 1
    assert recheck(log, confirmed) == 0


def test_file_size_limit_in_the_journal_confirms_nothing_and_heals(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path, OPTIONS)
    log.create_topic("t")

    with file_size_limit(150_000):
        confirmed = append_until_full(log)
        refused_again = refused(log)
    confirmed += append(log, confirmed, 10)

    assert refused_again
    check(log, confirmed)
    recheck(log, confirmed)


@pytest.mark.parametrize("where", ["segment", "checkpoint"])
def test_file_size_limit_in_files_behind_the_journal_heals(
    tmp_path: Path, where: str
) -> None:
    log = Log.open(tmp_path, SMALL_JOURNAL)
    log.create_topic("t", TopicOptions(segment_bytes=1 << 30))
    confirmed = append(log, 0, 50)
    if where == "checkpoint":
        for number in range(3000):
            log.create_topic(f"a topic with quite a long name, number {number}")
        log.sync()
    limit = {"segment": 60_000, "checkpoint": 120_000}[where]

    with file_size_limit(limit):
        confirmed += append(log, confirmed, 20)
        with pytest.raises(DiskFull):
            log.checkpoint()
        check(log, confirmed)
    confirmed += append(log, confirmed, 10)
    log.checkpoint()

    check(log, confirmed)
    recheck(log, confirmed)


def append_until_full(log: Log, most: int = 100_000) -> int:
    """Append and sync one by one until the log refuses; how many it confirmed."""
    start = log.topic("t").end_offset
    for number in range(start, start + most):
        try:
            log.append("t", Columns([b"%d " % number + KIB], 0))
            log.sync()
        except DiskFull:
            break
    return log.topic("t").end_offset - start


def append(log: Log, start: int, count: int) -> int:
    for number in range(start, start + count):
        log.append("t", Columns([b"%d " % number + KIB], 0))
        log.sync()
    return count


def refused(log: Log) -> bool:
    try:
        append(log, 0, 1)
    except DiskFull:
        return True
    return False


def check(log: Log, confirmed: int) -> None:
    """Every confirmed event is there, once and in order, and nothing else."""
    found: list[bytes] = []
    offset = 0
    while batches := log.read("t", offset):
        found += [payload for batch in batches for payload in batch.payloads()]
        offset = batches[-1].end_offset
    assert [int(text.split()[0]) for text in found] == list(range(confirmed))
    assert not len(log.damages)


def recheck(log: Log, confirmed: int) -> int:
    """The same after a crash; how many groups were replayed."""
    log.abandon()
    log = Log.open(log.directory, OPTIONS)
    try:
        check(log, confirmed)
        return log.report.groups
    finally:
        log.abandon()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(KIB * 4):
                pass
        except OSError:
            return


def reports(caplog: pytest.LogCaptureFixture, action: str) -> int:
    return sum(getattr(one, "action", "") == action for one in caplog.records)


@contextmanager
def file_size_limit(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(autouse=True)
def every_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="penstock")
