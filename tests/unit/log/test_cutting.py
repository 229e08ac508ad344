from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import Columns, Log
from penstock.log.cutting import erase, forget_before, forget_behind, tidy
from penstock.log.store import Dirty
from penstock.log.topic import Topic


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments of offsets 0..1, 2..3 and 4..5, one event a frame, none in memory."""
    log = Log.open(tmp_path)
    log.create_topic("t")
    for number in range(6):
        log.append("t", Columns([b"%d" % number]))
        log.commit()
        if number in (1, 3):
            log.roll("t")
    log.checkpoint()
    log.keeper.forget(log.topic("t"))
    return log


def files_of(topic: Topic) -> list[str]:
    names = (path.name for path in Path(topic.directory).iterdir())
    return sorted(name.lstrip("0") for name in names)


def bases(topic: Topic) -> list[int]:
    return [segment.base_offset for segment in topic.segments]


@pytest.mark.parametrize(
    ("offset", "left"),
    [(0, [0, 2, 4]), (1, [0, 2, 4]), (2, [2, 4]), (3, [2, 4]), (5, [4]), (6, [4])],
)
def test_sealed_segments_in_front_of_the_start_go(
    log: Log, offset: int, left: list[int]
) -> None:
    topic, shelf = log.topic("t"), log.catalog.shelf

    for _ in range(2):
        gone = forget_before(topic, offset)
        erase(Files(), shelf, topic, gone, Dirty())

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
    topic, shelf = log.topic("t"), log.catalog.shelf

    for _ in range(2):
        gone = forget_behind(topic, shelf, cut, cut)
        erase(Files(), shelf, topic, gone, Dirty())

        assert bases(topic) == left
        assert topic.end_offset == cut
        for segment in topic.segments:
            assert Path(segment.path).stat().st_size == segment.length
        payloads = [p for b in topic.read(0, 1 << 20) for p in b.payloads()]
        assert payloads == [b"%d" % number for number in range(cut)]


def test_cut_segment_loses_its_index(log: Log) -> None:
    topic, shelf = log.topic("t"), log.catalog.shelf
    log.checkpoint()
    assert "2.idx" in files_of(topic)

    gone = forget_behind(topic, shelf, 3, 3)
    erase(Files(), shelf, topic, gone, Dirty())

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
    dirty = Dirty()

    tidy(Files(), topic, dirty)

    assert not stray.exists()
    assert not stray.with_suffix(".idx").exists()
    assert Path(active.path).stat().st_size == active.length
    assert dirty.directories == {topic.directory}
    assert dirty.segments == {active.path: active.length}


def test_tidy_of_a_tidy_topic_leaves_nothing_to_sync(log: Log) -> None:
    dirty = Dirty()

    tidy(Files(), log.topic("t"), dirty)

    assert dirty == Dirty()


def test_what_was_cut_is_synced_by_the_next_checkpoint(log: Log) -> None:
    topic, shelf, dirty = log.topic("t"), log.catalog.shelf, Dirty()

    gone = forget_behind(topic, shelf, 3, 3)
    erase(Files(), shelf, topic, gone, dirty)

    (active,) = topic.segments[1:]
    assert dirty.segments == {active.path: active.length}
    assert dirty.directories == {topic.directory}


def test_tidy_of_a_topic_without_files_does_nothing(log: Log) -> None:
    topic, dirty = log.create_topic("empty"), Dirty()

    tidy(Files(), topic, dirty)

    assert dirty == Dirty()


def test_missing_active_segment_cannot_be_cut_and_that_is_no_failure(log: Log) -> None:
    topic, dirty = log.topic("t"), Dirty()
    Path(topic.segments[-1].path).unlink()

    tidy(Files(), topic, dirty)

    assert dirty == Dirty()
