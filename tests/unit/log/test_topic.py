from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log import Columns, Log, LogOptions
from penstock.log.layout import index_file
from tests.unit.log.faults import flip, offsets, payloads
from tests.unit.log.scenes import write_out

# Every commit is written out, and nothing is kept in memory.
ON_DISK = LogOptions(write_out_bytes=0, tail_cache_bytes=0)
IN_MEMORY = LogOptions()
CACHED = LogOptions(write_out_bytes=1000, tail_cache_bytes=2000)

EVERYWHERE = pytest.mark.parametrize("options", [ON_DISK, IN_MEMORY, CACHED])


def filled(directory: Path, options: LogOptions, *, roll_every: int = 5) -> Log:
    """Twenty frames of two events: offsets 0 to 39, time ten times the offset."""
    log = Log.open(directory, options)
    log.create_topic("t")
    for number in range(20):
        first = 2 * number
        texts = [b"%0100d" % (first + index) for index in range(2)]
        log.append("t", Columns(texts, [10 * first, 10 * first + 10]))
        log.commit()
        if options is not IN_MEMORY:
            write_out(log)
        if options is not IN_MEMORY and number % roll_every == roll_every - 1:
            log.roll("t")
    return log


def numbers(log: Log, offset: int, max_bytes: int) -> list[int]:
    found = log.read("t", offset, max_bytes)
    return [int(payload) for batch in found for payload in batch.payloads()]


@EVERYWHERE
@pytest.mark.parametrize("max_bytes", [1, 300, 700, 3000, 1 << 20])
def test_reading_on_finds_every_event_once(
    tmp_path: Path, options: LogOptions, max_bytes: int
) -> None:
    log = filled(tmp_path, options)

    found = [int(payload) for payload in payloads(log, "t", max_bytes)]

    assert found == list(range(40))
    log.close()


@EVERYWHERE
@pytest.mark.parametrize("offset", [0, 1, 9, 10, 11, 25, 38, 39])
def test_reading_begins_at_the_offset(
    tmp_path: Path, options: LogOptions, offset: int
) -> None:
    log = filled(tmp_path, options)

    assert numbers(log, offset, 1 << 20) == list(range(offset, 40))
    log.close()


@EVERYWHERE
def test_reading_is_bounded_but_finds_one_batch_at_least(
    tmp_path: Path, options: LogOptions
) -> None:
    log = filled(tmp_path, options)
    length = log.read("t", 0)[0].header.length

    assert numbers(log, 0, 1) == [0, 1]
    assert numbers(log, 0, 3 * length) == [0, 1, 2, 3, 4, 5]
    assert numbers(log, 8, 3 * length - 1) == [8, 9, 10, 11]
    log.close()


@EVERYWHERE
@pytest.mark.parametrize(
    ("time", "offset"),
    [(-5, 0), (0, 0), (1, 1), (100, 10), (101, 11), (390, 39), (391, 40)],
)
def test_time_is_found_wherever_it_lies(
    tmp_path: Path, options: LogOptions, time: int, offset: int
) -> None:
    log = filled(tmp_path, options)

    assert log.offset_at("t", time) == offset
    log.close()
    with Log.open(tmp_path) as log:
        assert log.offset_at("t", time) == offset


def test_time_that_only_a_trimmed_event_reaches_is_the_end(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.append("t", Columns([b"a", b"b"], [100, 5]))
        log.commit()
        log.trim("t", 1)

        assert log.offset_at("t", 50) == 2
        assert log.offset_at("t", 5) == 1


def test_time_out_of_order_is_found_by_the_first_event(tmp_path: Path) -> None:
    with Log.open(tmp_path, ON_DISK) as log:
        log.create_topic("t")
        for time in (50, 10, 70, 20):
            log.append("t", Columns([b"x"], time))
            log.commit()
            log.roll("t")

        assert [log.offset_at("t", t) for t in (5, 50, 51, 71)] == [0, 0, 2, 4]


@pytest.mark.parametrize("damage", ["missing", "torn", "flipped", "of another segment"])
def test_lost_index_gives_the_same_answers(tmp_path: Path, damage: str) -> None:
    log = filled(tmp_path, ON_DISK)
    log.checkpoint()
    topic = log.topic("t")
    paths = [Path(index_file(topic.directory, s.base_offset)) for s in topic.segments]
    log.close()
    present = [path for path in paths if path.exists()]
    assert len(present) >= 3
    for path, other in zip(present, [*present[1:], present[0]], strict=True):
        match damage:
            case "missing":
                path.unlink()
            case "torn":
                path.write_bytes(path.read_bytes()[:-3])
            case "flipped":
                flip(path, 45)
            case _:
                path.write_bytes(other.read_bytes()[:40] + bytes(24))

    with Log.open(tmp_path) as log:
        assert offsets(log, "t") == list(range(40))
        assert numbers(log, 13, 1) == [13]
        assert log.offset_at("t", 215) == 22
        assert list(log.damages) == []


def test_damaged_frame_is_left_out_and_reported_once(tmp_path: Path) -> None:
    log = filled(tmp_path, ON_DISK)
    segment = log.topic("t").segments[1]
    flip(segment.path, segment.length // 2)

    for _ in range(2):
        assert offsets(log, "t") == [*range(14), *range(16, 40)]
    assert numbers(log, 14, 1) == [16, 17]

    (damage,) = log.damages
    assert (damage.topic, damage.first_offset, damage.end_offset) == ("t", 14, 16)
    assert damage.file.startswith("topics/t-1/")
    log.close()


def test_damaged_first_frame_is_reported_by_a_read_alone(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t")
    for number in range(3):
        log.append("t", Columns([b"%d" % number]))
        log.commit()
        write_out(log)
    log.close()
    flip(next(tmp_path.glob("topics/*/*.seg")), 130)
    log = Log.open(tmp_path, LogOptions(start_check_bytes=0))

    found = payloads(log, "t")

    assert found == [b"1", b"2"]
    assert [(one.first_offset, one.end_offset) for one in log.damages] == [(0, 1)]
    log.close()


def test_damaged_end_of_a_segment_is_read_over(tmp_path: Path) -> None:
    log = filled(tmp_path, ON_DISK)
    segment = log.topic("t").segments[1]
    flip(segment.path, segment.length - 1)

    assert offsets(log, "t") == [*range(18), *range(20, 40)]
    assert numbers(log, 18, 1) == [20, 21]
    assert log.offset_at("t", 180) == 20
    log.close()


def test_missing_segment_is_read_over_and_reported(tmp_path: Path) -> None:
    log = filled(tmp_path, ON_DISK)
    segment = log.topic("t").segments[1]
    log.catalog.segment_cache.drop(segment.path)
    Path(segment.path).unlink()

    assert offsets(log, "t") == [*range(10), *range(20, 40)]
    assert log.offset_at("t", 100) == 20

    assert [(d.first_offset, d.end_offset) for d in log.damages] == [(10, 20)]
    log.close()


def test_bytes_are_those_of_the_segments(tmp_path: Path) -> None:
    log = filled(tmp_path, ON_DISK)
    topic = log.topic("t")

    sizes = [path.stat().st_size for path in Path(topic.directory).glob("*.seg")]

    assert topic.bytes == sum(sizes)
    assert topic.written_offset == 40
    log.close()


def test_topic_without_events_has_nothing(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        topic = log.create_topic("t")

        assert log.read("t", 0) == []
        assert log.offset_at("t", 0) == 0
        assert (topic.bytes, topic.active, topic.written_offset) == (0, None, 0)


def test_frame_larger_than_a_block_is_read(tmp_path: Path) -> None:
    with Log.open(tmp_path, ON_DISK) as log:
        log.create_topic("t")
        for size in (10, 3 << 20, 20):
            log.append("t", Columns([bytes(size)]))
            log.commit()

        sizes = [len(payload) for payload in payloads(log, "t", 1000)]

    assert sizes == [10, 3 << 20, 20]


@pytest.mark.slow
@EVERYWHERE
@pytest.mark.parametrize("max_bytes", [1, 700, 1 << 20])
@pytest.mark.parametrize("end", [0, 1, 8, 9, 10, 11, 33, 40])
def test_whole_batches_begin_in_front_of_the_end(
    tmp_path: Path, options: LogOptions, max_bytes: int, end: int
) -> None:
    with filled(tmp_path, options) as log:
        topic = log.topic("t")
        for offset in (0, 7, 9, 39):
            plain = topic.whole_batches(offset, max_bytes)

            found = topic.whole_batches(offset, max_bytes, end)

            bases = [one.header.base_offset for one in found]
            wanted = [one.header.base_offset for one in plain]
            assert bases == [base for base in wanted if base < end]
