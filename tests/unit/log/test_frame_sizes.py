"""Upkeep finds segments of small frames by their headers, and has them gathered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Columns, Log, TopicOptions, frame_sizes, housekeeping, store
from penstock.log.frame import HEADER_BYTES
from penstock.log.frame_sizes import FEWER, GAIN, LookAtFrames
from tests.ungathered import as_they_came
from tests.unit.log.faults import FaultyFiles, offsets
from tests.unit.log.scenes import add, segments


@pytest.fixture(autouse=True)
def earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames are written as they come, as versions before did."""
    monkeypatch.setattr(store, "gathered", as_they_came)


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Iterator[Log]:
    with Log.open(tmp_path, files=disk) as log:
        log.create_topic("t", TopicOptions(durability="os"))
        yield log


def sealed(log: Log, frames: int, size: int = 10) -> None:
    """One more segment of so many frames of one event."""
    for number in range(frames):
        add(log, b"%d" % number + bytes(size))
    log.roll("t")


def frames(log: Log) -> list[int]:
    """How many each sealed segment has."""
    topic = log.topic("t")
    return [len([*topic.frames_of(one)]) for one in topic.segments[:-1]]


def looked_at(log: Log) -> list[int]:
    """The bases of the segments that are found to be worth it."""
    topic = log.topic("t")
    work = LookAtFrames(log.files, [(topic, one) for one in topic.segments[:-1]])
    work.run()
    assert work.error is None
    return [segment.base_offset for _, segment in work.small]


@pytest.mark.parametrize(
    ("count", "size", "small"),
    [
        (FEWER, 10, False),
        (FEWER + 1, 10, True),
        (FEWER * 4, 5_000, True),
        (FEWER * 4, 1 << 14, False),  # an eighth of what is gathered, and a bit
        (FEWER * 4, 1 << 16, False),
    ],
)
def test_segments_with_many_frames_too_many_are_worth_it(
    log: Log, count: int, size: int, small: bool
) -> None:
    sealed(log, count, size)

    assert looked_at(log) == ([0] if small else [])
    log.maintain()
    assert (frames(log)[0] * GAIN <= count) is small
    assert len(offsets(log, "t")) == count


def test_large_frames_are_looked_at_with_one_small_read_each(
    log: Log, disk: FaultyFiles
) -> None:
    sealed(log, 20, 1 << 18)
    disk.calls.clear()

    assert looked_at(log) == []

    assert disk.count("read", ".seg") == 20


def test_the_first_frames_of_a_segment_say_what_it_is_like(
    log: Log, disk: FaultyFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_sizes, "LOOKED_AT", 100)
    sealed(log, 400, 800)
    disk.calls.clear()

    assert looked_at(log) == [0]

    assert disk.count("read", ".seg") < 100


def test_a_round_gathers_no_more_than_its_bytes(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        sealed(log, 32)
    size = log.topic("t").segments[0].length
    monkeypatch.setattr(housekeeping, "GATHERED_IN_A_ROUND_BYTES", 2 * size)
    monkeypatch.setattr(housekeeping, "LOOKED_AT_AT_ONCE", 3)

    found = []
    for _ in range(3):
        log.maintain()
        found.append(frames(log))

    assert found == [[1, 1, 32, 32], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert len(offsets(log, "t")) == 128


def test_what_was_looked_at_is_not_looked_at_again(log: Log, disk: FaultyFiles) -> None:
    sealed(log, 3)
    sealed(log, 32)
    log.maintain()
    log.checkpoint()
    disk.calls.clear()

    log.maintain()

    assert disk.count("read", ".seg") == 0


def test_a_segment_with_damage_stays_as_it_is(log: Log) -> None:
    sealed(log, 64)
    path = Path(log.topic("t").segments[0].path)
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)

    log.maintain()

    assert path.read_bytes() == data
    assert segments(log)[0] == 0


def test_a_segment_that_lacks_events_keeps_saying_so(log: Log) -> None:
    """Its index file says that all are there: verification compares the two."""
    sealed(log, 64)
    log.checkpoint()
    topic = log.topic("t")
    segment = topic.segments[0]
    found = [*topic.frames_of(segment)]
    path = Path(segment.path)
    cut = path.read_bytes()[: found[30].position]
    cut += path.read_bytes()[found[31].position :]
    path.write_bytes(cut)
    log.catalog.segment_cache.drop(segment.path)
    segment.length = len(cut)

    log.maintain()

    assert path.read_bytes() == cut
    assert path.with_suffix(".idx").exists()


def test_a_compacted_topic_is_gathered_where_it_is_compacted(log: Log) -> None:
    log.set_options("t", TopicOptions(compact=True, durability="os"))
    for number in range(64):
        key = b"old" if number == 3 else b"%d" % number
        log.append("t", Columns([b"x"], keys=[key]))
        log.commit()
    log.roll("t")
    log.append("t", Columns([b"x"], keys=[b"old"]))
    log.commit()

    log.maintain()

    assert offsets(log, "t") == [n for n in range(65) if n != 3]
    assert frames(log)[0] == 2  # in front of the gap, and behind it


def test_a_round_is_wanted_until_all_is_looked_at(tmp_path: Path) -> None:
    asked: list[bool] = []
    with Log.open(tmp_path) as log:
        log.create_topic("t", TopicOptions(durability="os"))
        asked.append(log.wants_upkeep)
        sealed(log, 32)
    with Log.open(tmp_path) as log:
        asked.append(log.wants_upkeep)
        log.maintain()
        log.maintain()
        assert frames(log) == [1]
        asked.append(log.wants_upkeep)
        sealed(log, 32)
        asked.append(log.wants_upkeep)

    assert asked == [False, True, False, True]


def test_damage_to_one_segment_leaves_the_others_to_be_gathered(log: Log) -> None:
    """Whatever a header says that has no checksum yet."""
    for _ in range(2):
        sealed(log, FEWER * 2)
    first = Path(log.topic("t").segments[0].path)
    whole = first.read_bytes()
    start = whole.index(b"PNSB")

    for at in range(start, start + HEADER_BYTES):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        first.write_bytes(damaged)

        assert FEWER * 2 in looked_at(log), at
