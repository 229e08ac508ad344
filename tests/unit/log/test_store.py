from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from penstock.errors import WriteFailed
from penstock.files import Files
from penstock.log import Log, LogOptions, TopicOptions, frame_of, store
from penstock.log.frame import HEADER_BYTES, peek
from penstock.log.layout import Layout
from penstock.log.store import (
    Dirty,
    SegmentWrite,
    TopicPlan,
    WriteOut,
    finish_write,
    is_aged,
    plan_writes,
    table,
    written,
)
from penstock.log.tail import TailFrame
from penstock.log.topic import TopicLog
from penstock.log.unsynced import MANY_FILES, Unsynced
from penstock.model.columns import Columns
from penstock.testing import CrashDisk

NOW_MS = 50_000


@pytest.fixture
def topic(tmp_path: Path) -> TopicLog:
    log = Log.open(tmp_path, LogOptions(start_check_bytes=0))
    topic = log.create_topic("t", TopicOptions(segment_bytes=1024, segment_age_s=10))
    log.sync()
    return topic


def add(topic: TopicLog, *sizes: int) -> None:
    """Unwritten frames of one event of that size each."""
    for size in sizes:
        data = frame_of(Columns([bytes(size)]), topic.end_offset, bytes(16))
        header = peek(data, 0)
        assert header is not None
        topic.tail.append(TailFrame(header, memoryview(data)[HEADER_BYTES:]))
        topic.end_offset = header.end_offset


def write_out(tmp_path: Path, plan: TopicPlan) -> WriteOut:
    files, layout = Files(), Layout(str(tmp_path))
    files.make_directory(layout.topics)
    return WriteOut(files, layout, [plan], Unsynced(files, layout.topics))


def perform(tmp_path: Path, plan: TopicPlan) -> list[SegmentWrite]:
    work = write_out(tmp_path, plan)
    work.run()
    assert work.error is None
    for write in work.writes:
        finish_write(write)
    return work.writes


def planned(writes: list[SegmentWrite]) -> list[tuple[int, bool, int]]:
    return [(w.segment.base_offset, w.new, len(w.frames)) for w in writes]


def test_first_frames_go_into_a_new_segment(topic: TopicLog) -> None:
    add(topic, 10, 10)

    writes = plan_writes(topic, NOW_MS).lay_out()

    assert planned(writes) == [(0, True, 1)]
    assert writes[0].position == topic.header_length
    assert writes[0].end_offset == 2


def test_frames_that_do_not_fit_go_into_segments_of_their_own(topic: TopicLog) -> None:
    add(topic, 600, 600, 600, 5000, 10)

    writes = plan_writes(topic, NOW_MS).lay_out()

    assert planned(writes) == [
        (0, True, 1),
        (1, True, 1),
        (2, True, 1),
        (3, True, 1),
        (4, True, 1),
    ]


def test_more_frames_go_behind_those_that_are_there(
    topic: TopicLog, tmp_path: Path
) -> None:
    add(topic, 100)
    perform(tmp_path, plan_writes(topic, NOW_MS))
    add(topic, 100)

    plan = plan_writes(topic, NOW_MS)

    writes = plan.lay_out()
    assert planned(writes) == [(0, False, 1)]
    assert writes[0].position == topic.segments[0].length
    perform(tmp_path, plan)
    assert Path(topic.segments[0].path).stat().st_size == topic.segments[0].length
    assert topic.tail.unwritten() == []


def test_aged_segment_takes_no_more_frames(topic: TopicLog, tmp_path: Path) -> None:
    add(topic, 10)
    perform(tmp_path, plan_writes(topic, NOW_MS))
    add(topic, 10)

    assert planned(plan_writes(topic, NOW_MS + 9_999).lay_out()) == [(0, False, 1)]
    assert planned(plan_writes(topic, NOW_MS + 10_000).lay_out()) == [(1, True, 1)]


@pytest.mark.parametrize(
    ("age_s", "created_ms", "aged"),
    [(None, 0, False), (10, None, False), (50, 0, True), (50.001, 0, False)],
)
def test_age_counts_from_creation_if_it_is_known(
    topic: TopicLog, age_s: float | None, created_ms: int | None, aged: bool
) -> None:
    add(topic, 10)
    segment = plan_writes(topic, 0).lay_out()[0].segment
    segment.created_ms = created_ms

    assert is_aged(segment, age_s, NOW_MS) is aged


def test_roll_adds_an_empty_segment_once(topic: TopicLog, tmp_path: Path) -> None:
    add(topic, 10)

    writes = perform(tmp_path, plan_writes(topic, NOW_MS, roll=True))

    assert planned(writes) == [(0, True, 1), (1, True, 0)]
    assert writes[1].end_offset == 1
    assert plan_writes(topic, NOW_MS, roll=True).lay_out() == []


def test_nothing_to_write_is_nothing_to_do(topic: TopicLog) -> None:
    assert plan_writes(topic, NOW_MS).lay_out() == []


def test_segment_is_sealed_by_its_successor(topic: TopicLog, tmp_path: Path) -> None:
    add(topic, 10)
    work = write_out(tmp_path, plan_writes(topic, NOW_MS, roll=True))
    work.run()
    first, second = work.writes

    sealed = [finish_write(first), finish_write(second)]

    assert sealed == [None, first.segment]
    assert [s.end_offset for s in topic.segments] == [1, 1]
    assert topic.active is second.segment


def test_leftover_at_the_place_of_a_new_segment_is_written_over(
    topic: TopicLog, tmp_path: Path
) -> None:
    add(topic, 10)
    plan = plan_writes(topic, NOW_MS)
    leftover = Path(plan.lay_out()[0].segment.path)
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"x" * 10_000)

    perform(tmp_path, plan)

    assert leftover.stat().st_size == topic.segments[0].length


def test_table_shows_topics_as_they_will_stand(topic: TopicLog) -> None:
    (empty,) = table([topic])
    add(topic, 10, 10)
    writes = plan_writes(topic, NOW_MS).lay_out()

    (record,) = written(table([topic]), writes)

    assert (empty.active_base, empty.active_length) == (None, 0)
    assert (record.id, record.name, record.end_offset) == (1, "t", 2)
    assert (record.active_base, record.active_length) == (0, writes[0].end)


def test_table_without_writes_shows_topics_as_they_stand(
    topic: TopicLog, tmp_path: Path
) -> None:
    add(topic, 10)
    perform(tmp_path, plan_writes(topic, NOW_MS))

    (record,) = table([topic])

    assert (record.active_base, record.active_length) == (0, topic.segments[0].length)


def test_dirty_remembers_the_first_place_that_was_written(
    topic: TopicLog, tmp_path: Path
) -> None:
    dirty = Dirty()
    add(topic, 10)
    (first,) = perform(tmp_path, plan_writes(topic, NOW_MS))
    dirty.note(first)
    add(topic, 10)
    (second,) = plan_writes(topic, NOW_MS).lay_out()

    dirty.note(second)

    assert dirty.segments == {first.segment.path: 0}
    assert dirty.directories == {topic.directory}


def test_dirty_of_a_failed_checkpoint_is_taken_back(topic: TopicLog) -> None:
    add(topic, 10)
    segment = plan_writes(topic, NOW_MS).lay_out()[0].segment
    dirty = Dirty(segments={"a": 50, "b": 5}, sealed=[(topic, segment)])
    failed = Dirty(segments={"a": 10, "c": 7}, suspect={"a"}, directories={"d"})

    dirty.merge(failed)

    assert dirty.segments == {"a": 10, "b": 5, "c": 7}
    assert (dirty.suspect, dirty.directories) == ({"a"}, {"d"})
    assert dirty.sealed == [(topic, segment)]


def test_many_small_topics_are_synced_at_once_and_survive_a_crash():
    disk = CrashDisk()
    log = Log.open("/data", files=disk)
    for number in range(MANY_FILES + 10):
        log.create_topic(f"t{number}")
        log.append(f"t{number}", Columns([b"x"], 1))
    log.sync()
    syncs: list[str] = []
    disk.fail(lambda action, path: syncs.append(action))

    log.checkpoint()

    assert syncs.count("sync_all") == 1
    assert syncs.count("sync") < 20
    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(7)))
    assert all(again.topic(name).end_offset == 1 for name in again.topics())
    assert len(again.topics()) == MANY_FILES + 10


def test_a_failed_sync_of_everything_is_made_good_by_the_next_checkpoint():
    disk = CrashDisk()
    log = Log.open("/data", files=disk)
    for number in range(MANY_FILES + 1):
        log.create_topic(f"t{number}")
        log.append(f"t{number}", Columns([b"x"], 1))
    broken = OSError(errno.EIO, "the disk")
    disk.fail(lambda action, path: broken if action == "sync_all" else None)
    with pytest.raises(WriteFailed):
        log.checkpoint()
    disk.fail(None)

    log.checkpoint()

    log.abandon()
    again = Log.open("/data", files=disk.crashed(Random(7)))
    assert [b.payloads() for b in again.read("t0", 0)] == [[b"x"]]


def test_mistake_of_ours_is_a_write_that_failed(
    tmp_path: Path, topic: TopicLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread goes on, and what was to be written stays where it is."""

    def fail(*_: object) -> None:
        raise RuntimeError("as planned")

    add(topic, 10)
    monkeypatch.setattr(store, "gathered", fail)
    work = write_out(tmp_path, plan_writes(topic, NOW_MS))

    work.run()

    assert "as planned" in str(work.error)
    assert [write.done for write in work.writes] == []
