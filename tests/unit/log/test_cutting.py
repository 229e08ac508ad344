from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import Columns, Log
from penstock.log.cutting import (
    erase,
    forget_before,
    forget_behind,
    length_behind,
    tidy,
)
from penstock.log.topic import TopicLog
from tests.unit.log.faults import FaultyFiles
from tests.unit.log.scenes import write_out


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments of offsets 0..1, 2..3 and 4..5, one event a frame, none in memory."""
    log = Log.open(tmp_path)
    log.create_topic("t")
    for number in range(6):
        log.append("t", Columns([b"%d" % number]))
        log.commit()
        write_out(log)
        if number in (1, 3):
            log.roll("t")
    log.checkpoint()
    log.flusher.forget(log.topic("t"))
    return log


def files_of(topic: TopicLog) -> list[str]:
    names = (path.name for path in Path(topic.directory).iterdir())
    return sorted(name.lstrip("0") for name in names)


def changes(files: FaultyFiles) -> list[tuple[str, str]]:
    """What was asked for that a power cut could undo, and the syncs, in order."""
    names = ("remove", "truncate", "sync", "sync_directory")
    return [
        (call, Path(path).name.lstrip("0"))
        for call, path in files.calls
        if call in names
    ]


def bases(topic: TopicLog) -> list[int]:
    return [segment.base_offset for segment in topic.segments]


@pytest.mark.parametrize(
    ("offset", "left"),
    [(0, [0, 2, 4]), (1, [0, 2, 4]), (2, [2, 4]), (3, [2, 4]), (5, [4]), (6, [4])],
)
def test_sealed_segments_in_front_of_the_start_go(
    log: Log, offset: int, left: list[int]
) -> None:
    topic, segment_cache = log.topic("t"), log.catalog.segment_cache

    for _ in range(2):
        gone = forget_before(topic, offset)
        erase(Files(), segment_cache, topic, gone)

        assert bases(topic) == left
        assert topic.start_offset == offset
        found = [name for name in files_of(topic) if name.endswith("seg")]
        assert len(found) == len(left)


def test_start_never_moves_back(log: Log) -> None:
    topic = log.topic("t")
    forget_before(topic, 3)

    forget_before(topic, 1)

    assert topic.start_offset == 3


@pytest.mark.parametrize(
    ("cut", "left"), [(0, []), (1, [0]), (2, [0]), (3, [0, 2]), (5, [0, 2, 4])]
)
def test_frames_behind_the_cut_go(log: Log, cut: int, left: list[int]) -> None:
    topic, segment_cache = log.topic("t"), log.catalog.segment_cache

    for _ in range(2):
        gone = forget_behind(topic, segment_cache, cut, cut, length_behind(topic, cut))
        erase(Files(), segment_cache, topic, gone)

        assert bases(topic) == left
        assert topic.end_offset == cut
        for segment in topic.segments:
            assert Path(segment.path).stat().st_size == segment.length
        payloads = [p for b in topic.read(0, 1 << 20) for p in b.payloads()]
        assert payloads == [b"%d" % number for number in range(cut)]


def test_cut_segment_loses_its_index(log: Log) -> None:
    topic, segment_cache = log.topic("t"), log.catalog.segment_cache
    log.checkpoint()
    assert "2.idx" in files_of(topic)

    gone = forget_behind(topic, segment_cache, 3, 3, length_behind(topic, 3))
    erase(Files(), segment_cache, topic, gone)

    assert "2.idx" not in files_of(topic)
    assert topic.index_of(topic.segments[-1]).end_offset == 3


def test_tidy_removes_what_the_checkpoint_does_not_know(log: Log) -> None:
    topic = log.topic("t")
    active = topic.segments[-1]
    stray = Path(topic.directory) / f"{9:020}.seg"
    stray.write_bytes(b"x")
    stray.with_suffix(".idx").write_bytes(b"x")
    with Path(active.path).open("ab") as file:
        file.write(b"not known")

    tidy(Files(), topic)

    assert not stray.exists()
    assert not stray.with_suffix(".idx").exists()
    assert Path(active.path).stat().st_size == active.length


def test_tidy_removes_temporary_files(log: Log) -> None:
    topic = log.topic("t")
    leftover = Path(topic.directory) / f"{2:020}.seg.tmp"
    leftover.write_bytes(b"x")

    tidy(Files(), topic)

    assert not leftover.exists()
    assert bases(topic) == [0, 2, 4]


def test_what_tidy_cuts_and_removes_is_synced_at_once(log: Log) -> None:
    topic, files = log.topic("t"), FaultyFiles()
    for base in (8, 9):
        (Path(topic.directory) / f"{base:020}.seg").write_bytes(b"x")
    with Path(topic.segments[-1].path).open("ab") as file:
        file.write(b"not known")

    tidy(files, topic)

    assert changes(files) == [
        ("remove", "8.seg"),
        ("remove", "9.seg"),
        ("sync_directory", "t-1"),
        ("truncate", "4.seg"),
        ("sync", "4.seg"),
    ]


def test_tidy_of_a_tidy_topic_changes_and_syncs_nothing(log: Log) -> None:
    files = FaultyFiles()

    tidy(files, log.topic("t"))

    assert changes(files) == []


def test_what_a_truncation_cuts_and_removes_is_synced_at_once(log: Log) -> None:
    topic, segment_cache, files = (
        log.topic("t"),
        log.catalog.segment_cache,
        FaultyFiles(),
    )

    gone = forget_behind(topic, segment_cache, 3, 3, length_behind(topic, 3))
    erase(files, segment_cache, topic, gone)

    done = changes(files)
    assert done.index(("truncate", "2.seg")) + 1 == done.index(("sync", "2.seg"))
    assert done[-2:] == [("remove", "4.seg"), ("sync_directory", "t-1")]


def test_what_a_trim_removes_is_synced_at_once_and_nothing_is_cut(log: Log) -> None:
    topic, segment_cache, files = (
        log.topic("t"),
        log.catalog.segment_cache,
        FaultyFiles(),
    )

    gone = forget_before(topic, 4)
    erase(files, segment_cache, topic, gone)

    removed = [name for call, name in changes(files) if call == "remove"]
    assert {".seg", "2.seg"} <= set(removed)
    assert changes(files)[-1] == ("sync_directory", "t-1")


def test_erasing_nothing_changes_and_syncs_nothing(log: Log) -> None:
    topic, files = log.topic("t"), FaultyFiles()

    erase(files, log.catalog.segment_cache, topic, [])

    assert changes(files) == []


def test_segments_of_a_folder_that_is_gone_are_no_failure(log: Log) -> None:
    topic, segment_cache, files = (
        log.topic("t"),
        log.catalog.segment_cache,
        FaultyFiles(),
    )
    gone = forget_behind(topic, segment_cache, 0, 0, length_behind(topic, 0))
    Files().remove_tree(topic.directory)

    erase(files, segment_cache, topic, gone)

    assert changes(files) == []


def test_tidy_of_a_topic_without_files_does_nothing(log: Log) -> None:
    topic, files = log.create_topic("empty"), FaultyFiles()

    tidy(files, topic)

    assert files.calls == []


def test_missing_active_segment_cannot_be_cut_and_that_is_no_failure(log: Log) -> None:
    topic, files = log.topic("t"), FaultyFiles()
    Path(topic.segments[-1].path).unlink()

    tidy(files, topic)

    assert changes(files) == []
