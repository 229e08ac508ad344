from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import (
    Backlogged,
    DiskFull,
    OffsetOutOfRange,
    UnknownTopic,
    WriteFailed,
)
from penstock.log import Columns, Log, LogOptions
from tests.unit.log.faults import FaultyFiles, flip, offsets, payloads
from tests.unit.log.scenes import RESTARTS, TEN, Restart, add, segmented, segments


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles, clock: ManualClock) -> Log:
    log = Log.open(tmp_path, files=disk, clock=clock)
    log.create_topic("t")
    log.sync()
    return log


# Rolling


def test_roll_seals_the_segment_and_begins_another(log: Log) -> None:
    segmented(log)

    assert segments(log) == [0, 4, 8]
    assert payloads(log, "t") == TEN


def test_roll_of_a_fresh_segment_does_nothing(log: Log) -> None:
    add(log, b"a")
    log.roll("t")
    log.roll("t")

    assert segments(log) == [0, 1]


def test_roll_of_an_empty_topic_is_harmless(log: Log) -> None:
    log.roll("t")
    log.roll("t")
    add(log, b"a")

    assert payloads(log, "t") == [b"a"]


def test_roll_that_fails_raises_and_loses_nothing(log: Log, disk: FaultyFiles) -> None:
    add(log, b"a")
    disk.fail("write", ".seg")

    with pytest.raises(DiskFull):
        log.roll("t")

    assert payloads(log, "t") == [b"a"]
    log.roll("t")
    assert segments(log) == [0, 1]


def test_housekeeping_needs_an_idle_log(log: Log) -> None:
    log.append("t", Columns([b"a"]))
    commit = log.begin_commit()

    for change in (
        lambda: log.roll("t"),
        lambda: log.trim("t", 0),
        lambda: log.truncate("t", 0),
        lambda: log.delete_topic("t"),
    ):
        with pytest.raises(Backlogged):
            change()

    assert commit is not None
    commit.run()
    log.end_commit(commit)
    log.roll("t")


def test_housekeeping_does_work_that_is_due_and_not_begun(tmp_path: Path) -> None:
    with Log.open(tmp_path / "other", LogOptions(checkpoint_bytes=1024)) as log:
        log.create_topic("t")
        log.append("t", Columns([bytes(2000)]))
        log.commit()
        log.append("t", Columns([b"x"]))
        commit = log.begin_commit()
        assert commit is not None
        commit.run()
        log.end_commit(commit)  # with which a checkpoint is due

        log.delete_topic("t")

        assert log.topics() == []
        assert log.begin_store() is None


# Truncating


@pytest.mark.slow
@RESTARTS
@pytest.mark.parametrize("offset", range(11))
@pytest.mark.parametrize("stored", [False, True])
def test_truncate_forgets_what_is_behind_the_offset(
    tmp_path: Path, log: Log, offset: int, stored: bool, restart: Restart
) -> None:
    segmented(log, stored=stored)

    log.truncate("t", offset)

    assert payloads(log, "t") == TEN[:offset]
    appended = log.append("t", Columns([b"next"]))
    assert appended.base_offset == offset
    log.commit()
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    log = restart(log, tmp_path)
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    assert offsets(log, "t") == list(range(offset + 1))
    assert list(log.damages) == []
    log.close()


@pytest.mark.parametrize("offset", [0, 2, 4, 6, 8, 9])
def test_crash_right_after_a_truncation_leaves_a_sound_log(
    tmp_path: Path, log: Log, offset: int
) -> None:
    segmented(log)
    log.truncate("t", offset)
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == TEN[:offset]
    assert list(log.damages) == []
    add(log, b"next")
    log.close()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    assert list(log.damages) == []
    log.close()


def test_truncate_keeps_the_ids_of_what_stays(log: Log) -> None:
    appended = log.append("t", Columns(TEN))
    log.commit()
    before = [appended.generated_id(index) for index in range(3)]

    log.truncate("t", 3)

    assert log.read("t", 0)[0].ids() == before


@pytest.mark.parametrize("offset", [-1, 11])
def test_truncate_outside_the_topic_is_refused(log: Log, offset: int) -> None:
    add(log, *TEN)

    with pytest.raises(OffsetOutOfRange):
        log.truncate("t", offset)


def test_truncate_in_a_damaged_range_leaves_what_is_in_front(
    tmp_path: Path, log: Log
) -> None:
    segmented(log)
    log.close()
    log = Log.open(tmp_path)
    active = log.topic("t").segments[-1]
    flip(active.path, active.length - 1)
    log.roll("t")

    log.truncate("t", 9)

    assert payloads(log, "t") == TEN[:8]
    assert log.append("t", Columns([b"next"])).base_offset == 9
    log.commit()
    assert offsets(log, "t") == [*range(8), 9]
    log.close()


def test_truncate_that_fails_changes_nothing(log: Log, disk: FaultyFiles) -> None:
    segmented(log)
    disk.fail("sync", "/journal", error=errno.EIO)

    with pytest.raises(WriteFailed):
        log.truncate("t", 3)

    assert payloads(log, "t") == TEN
    assert log.append("t", Columns([b"next"])).base_offset == 10


def test_truncate_in_a_gap_that_compaction_left(log: Log) -> None:
    for first, second in ((b"a", b"b"), (b"a", b"c")):
        log.append("t", Columns([b"1", b"2"], keys=[first, second]))
        log.commit()
    log.compact("t")
    assert offsets(log, "t") == [1, 2, 3]

    log.truncate("t", 1)

    assert offsets(log, "t") == []
    assert log.append("t", Columns([b"next"])).base_offset == 1
    log.commit()
    assert offsets(log, "t") == [1]


def test_events_behind_a_gap_that_was_cut_are_found(log: Log) -> None:
    log.append("t", Columns([b"0", b"1", b"2", b"3"], keys=[b"a", b"b", b"c", b"c"]))
    log.commit()
    log.compact("t")
    log.truncate("t", 3)
    add(log, b"next")

    found = [batch.payloads() for batch in log.read("t", 2, 1)]

    assert found == [[b"next"]]


# Trimming


@RESTARTS
@pytest.mark.parametrize("offset", range(11))
@pytest.mark.parametrize("stored", [False, True])
def test_trim_forgets_what_is_in_front_of_the_offset(
    tmp_path: Path, log: Log, offset: int, stored: bool, restart: Restart
) -> None:
    segmented(log, stored=stored)

    log.trim("t", offset)

    assert payloads(log, "t") == TEN[offset:]
    assert log.topic("t").start_offset == offset
    log = restart(log, tmp_path)
    assert payloads(log, "t") == TEN[offset:]
    assert log.append("t", Columns([b"next"])).base_offset == 10
    assert list(log.damages) == []
    log.close()


def test_trim_removes_segments_that_lie_in_front(log: Log) -> None:
    segmented(log)

    log.trim("t", 7)

    assert segments(log) == [4, 8]
    with pytest.raises(OffsetOutOfRange):
        log.read("t", 6)


def test_trim_outside_the_topic_is_refused(log: Log) -> None:
    add(log, *TEN)
    log.trim("t", 5)

    for offset in (4, 11):
        with pytest.raises(OffsetOutOfRange):
            log.trim("t", offset)


def test_time_in_front_of_a_trimmed_topic_is_its_start(log: Log) -> None:
    log.append("t", Columns(TEN, list(range(100, 110))))
    log.commit()

    log.trim("t", 5)

    assert log.offset_at("t", 0) == 5
    assert log.offset_at("t", 107) == 7


# Deleting


@RESTARTS
def test_deleted_topic_is_gone_and_its_name_is_free(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    segmented(log)
    directory = Path(log.topic("t").directory)

    log.delete_topic("t")

    assert not directory.exists()
    with pytest.raises(UnknownTopic):
        log.read("t", 0)
    log.create_topic("t")
    add(log, b"new")
    assert payloads(log, "t") == [b"new"]
    log = restart(log, tmp_path)
    assert payloads(log, "t") == [b"new"]
    log.close()


@RESTARTS
def test_deleted_topic_stays_deleted(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    segmented(log)
    log.delete_topic("t")

    log = restart(log, tmp_path)

    assert log.topics() == []
    assert list((tmp_path / "topics").iterdir()) == []
    log.close()


def test_topic_without_events_is_deleted(log: Log) -> None:
    log.delete_topic("t")

    assert log.topics() == []


def test_delete_that_fails_changes_nothing(log: Log, disk: FaultyFiles) -> None:
    add(log, b"a")
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.delete_topic("t")

    assert payloads(log, "t") == [b"a"]
