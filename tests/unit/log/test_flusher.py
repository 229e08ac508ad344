from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import Backlogged, DiskFull
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.layout import index_file
from penstock.log.verification import verify
from penstock.testing import CrashDisk, PowerCut
from tests.unit.log.faults import FaultyFiles, payloads
from tests.unit.log.scenes import actions

SMALL = LogOptions(write_out_bytes=1024, tail_cache_bytes=2048)


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t", TopicOptions(segment_bytes=4096))
    log.sync()
    return log


def fill(log: Log, count: int, start: int = 0) -> list[bytes]:
    """Events in groups of their own, each of which brings a write-out nearer."""
    texts = [b"%0200d" % number for number in range(start, start + count)]
    for text in texts:
        log.append("t", Columns([text]))
        log.commit()
    return texts


def test_memory_holds_what_is_unwritten_and_a_little_more(log: Log) -> None:
    texts = fill(log, 100)

    start = log.topic("t").tail.start_offset
    assert log.flusher.unwritten_bytes <= 1024 + 400
    assert start is not None
    assert 80 < start < 100
    assert payloads(log, "t") == texts


def test_recent_events_are_read_without_touching_the_disk(
    log: Log, disk: FaultyFiles
) -> None:
    fill(log, 100)
    start = log.topic("t").tail.start_offset
    assert start is not None
    before = disk.count("read")

    found = log.read("t", start)

    assert found[-1].end_offset == 100
    assert disk.count("read") == before


def test_events_in_segments_are_not_written_twice(log: Log, disk: FaultyFiles) -> None:
    fill(log, 4)
    log.checkpoint()
    before = disk.count("write", ".seg")

    log.checkpoint()

    assert disk.count("write", ".seg") == before


def test_forgotten_topic_is_not_written_out(log: Log, disk: FaultyFiles) -> None:
    log.append("t", Columns([b"a"]))
    log.commit()
    log.flusher.forget(log.topic("t"))

    work = log.flusher.begin_write_out(0)

    assert work.writes == []
    assert log.flusher.unwritten_bytes == 0
    log.flusher.finish(work)


def test_too_much_unwritten_while_work_is_under_way_is_refused(log: Log) -> None:
    log.append("t", Columns([bytes(3000)]))
    commit = log.begin_commit()
    assert commit is not None
    commit.run()
    log.end_commit(commit)
    work = log.begin_store()
    assert work is not None

    with pytest.raises(Backlogged) as caught:
        log.append("t", Columns([b"a"]))

    assert caught.value.limit_bytes == 2048
    work.run()
    log.end_store(work)
    log.append("t", Columns([b"a"]))


def test_much_that_is_unwritten_is_accepted_if_it_can_be_written_now(log: Log) -> None:
    log.append("t", Columns([bytes(3000)]))
    commit = log.begin_commit()
    assert commit is not None
    commit.run()
    log.end_commit(commit)

    log.append("t", Columns([b"a"]))

    assert log.flusher.unwritten_bytes > 2 * SMALL.write_out_bytes
    log.commit()
    assert log.flusher.unwritten_bytes == 0


def test_indexes_of_sealed_segments_are_stored_by_the_next_checkpoint(log: Log) -> None:
    fill(log, 50)
    log.checkpoint()
    log.checkpoint()

    topic = log.topic("t")
    paths = [Path(index_file(topic.directory, s.base_offset)) for s in topic.segments]

    assert len(paths) > 2
    assert [path.exists() for path in paths] == [True] * (len(paths) - 1) + [False]
    for segment in topic.segments[:-1]:
        assert topic.stored_index(segment) == topic._build_index(segment)


@pytest.mark.parametrize("call", ["create", "write", "rename"])
def test_index_that_cannot_be_stored_is_no_failure(
    log: Log, disk: FaultyFiles, call: str
) -> None:
    disk.fail(call, ".idx", times=100)
    texts = fill(log, 50)
    log.checkpoint()

    log.checkpoint()

    assert disk.count(call, ".idx") > 0
    assert payloads(log, "t") == texts


@pytest.mark.parametrize("calls", range(1, 9))
def test_kill_while_an_index_is_stored_leaves_no_damage(calls: int) -> None:
    disk = CrashDisk()
    log = Log.open("/data", files=disk)
    log.create_topic("t", TopicOptions(segment_bytes=4096))
    texts = [bytes(5000), bytes(5001)]
    for text in texts:
        log.append("t", Columns([text]))
        log.checkpoint()
    assert log.flusher.dirty.sealed, "the last checkpoint has the first segment sealed"
    disk.cut_power_in(calls)
    with pytest.raises(PowerCut):
        log.checkpoint()
    disk.cut_power_in(None)
    log.abandon()

    log = Log.open("/data", files=disk)  # nothing is lost that was written

    assert payloads(log, "t") == texts
    log.close()
    assert verify("/data", files=disk).damages == []


def test_failed_write_out_is_done_again_at_the_same_place(
    tmp_path: Path, log: Log, disk: FaultyFiles
) -> None:
    fill(log, 3)
    disk.fail("write", ".seg", half=True)
    with pytest.raises(DiskFull):
        log.checkpoint()

    log.checkpoint()

    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [b"%0200d" % number for number in range(3)]
    assert list(log.damages) == []
    log.close()


def test_one_topic_that_cannot_be_written_does_not_lose_another(
    tmp_path: Path, log: Log, disk: FaultyFiles
) -> None:
    log.create_topic("u")
    log.append("u", Columns([b"u"]))
    log.append("t", Columns([b"t"]))
    log.commit()
    disk.fail("write", "/u-")
    with pytest.raises(DiskFull):
        log.checkpoint()

    log.checkpoint()

    assert (payloads(log, "t"), payloads(log, "u")) == ([b"t"], [b"u"])
    log.abandon()
    log = Log.open(tmp_path)
    assert (payloads(log, "t"), payloads(log, "u")) == ([b"t"], [b"u"])
    log.close()


def test_segment_sealed_while_a_checkpoint_failed_gets_its_index_later(
    log: Log, disk: FaultyFiles
) -> None:
    fill(log, 3)
    log.roll("t")
    disk.fail("sync", "/checkpoints")
    with pytest.raises(DiskFull):
        log.checkpoint()

    log.checkpoint()

    topic = log.topic("t")
    assert topic.stored_index(topic.segments[0]) is not None


# Segments that cannot be written


@pytest.mark.parametrize("call", ["write", "create"])
def test_full_segments_refuse_more_events_and_accept_again(
    tmp_path: Path, disk: FaultyFiles, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail(call, "/topics", times=1000)
    kept: list[bytes] = []
    with pytest.raises(DiskFull):
        for number in range(1000):
            kept += fill(log, 1, number)
    caplog.clear()
    during = payloads(log, "t")
    disk.heal()

    log.commit()
    kept += fill(log, 30, 1000)

    assert during == kept[: len(during)]
    assert payloads(log, "t") == kept
    assert "write_out_resumed" in actions(caplog)
    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == kept
    log.close()


def test_log_that_refused_events_accepts_them_again_without_being_asked_to_commit(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail("write", "/topics", times=1000)
    with pytest.raises(DiskFull):
        fill(log, 1000)
    disk.heal()

    with suppress(DiskFull):
        fill(log, 1)
    fill(log, 1)

    assert log.flusher.error is None
    log.close()


def test_failed_write_out_is_reported_once(
    tmp_path: Path, disk: FaultyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, logger="penstock")
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail("write", "/topics", times=1000)

    with pytest.raises(DiskFull):
        fill(log, 1000)

    assert actions(caplog) == ["write_out_failed"]
    log.abandon()
