"""One segment at a time: each kind of damage, and what is no damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import Columns, Log, TopicOptions, frame_of
from penstock.log.batch import Batch
from penstock.log.frame import FrameFlag, build
from penstock.log.index import Index
from penstock.log.layout import Layout, index_file
from penstock.log.reader import Reader
from penstock.log.segment import MAX_HEADER_BYTES, decode_header, encode_header
from penstock.log.tally import Tally, VerifyResult
from penstock.log.topic import TopicLog
from penstock.log.verify_segment import SegmentCheck
from tests.unit.log.scenes import write_out

PER_SEGMENT = 5


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Topic ``t``: three sealed segments and an active one, five frames each."""
    with Log.open(tmp_path / "data") as log:
        log.create_topic("t")
        for segment in range(4):
            for number in range(PER_SEGMENT):
                at = 1000 + segment * PER_SEGMENT + number
                log.append(
                    "t", Columns([b"payload", b"another"], at, keys=[b"k", b"l"])
                )
                log.commit()
                write_out(log)
            if segment < 3:
                log.roll("t")
        log.checkpoint()
    return tmp_path / "data"


def test_good_segments_are_counted(data: Path) -> None:
    results = [check(data, number) for number in range(4)]

    assert [result.damages for result in results] == [[], [], [], []]
    assert [result.frames for result in results] == [5, 5, 5, 5]
    assert [result.events for result in results] == [10, 10, 10, 10]


def test_a_flipped_bit_in_a_frame_names_its_offsets(data: Path) -> None:
    path = segments(data)[1]
    flip(path, path.stat().st_size // 2)

    result = check(data, 1)

    (damage,) = result.damages
    assert damage.reason == "frame fails its checksum"
    assert (damage.topic, damage.first_offset, damage.end_offset) == ("t", 14, 16)
    assert result.events == 8


def test_a_damaged_header_is_found(data: Path) -> None:
    flip(segments(data)[1], 20)

    (damage,) = check(data, 1).damages

    assert (damage.position, damage.reason) == (0, "segment header fails its checksum")


def test_a_header_of_another_segment_is_found(data: Path) -> None:
    path = segments(data)[1]
    whole = path.read_bytes()
    header = decode_header(whole[:MAX_HEADER_BYTES], "")
    other = encode_header(99, 77, header.created_ms, header.topic)
    path.write_bytes(other + whole[header.length :])

    (damage,) = check(data, 1).damages

    assert damage.reason == "segment header is of topic 77, base offset 99"


def test_a_missing_file_is_damage_of_all_its_offsets(data: Path) -> None:
    with Reader.open(data) as reader:
        topic = reader.topic("t")
        segments(data)[1].unlink()

        (damage,) = check_of(data, topic, 1).damages

    assert damage.reason == "the file is missing"
    assert (damage.first_offset, damage.end_offset) == (10, 20)


def test_a_file_that_ends_too_early_is_damage(data: Path) -> None:
    path = segments(data)[3]
    path.write_bytes(path.read_bytes()[:-100])

    (damage,) = check(data, 3).damages

    assert damage.end_offset == 40


def test_a_damaged_index_is_found(data: Path) -> None:
    path = index_path(data, 10)
    flip(path, 20)

    (damage,) = check(data, 1).damages

    assert damage.file.endswith("00000000000000000010.idx")
    assert damage.reason == "index fails its checksum"


def test_an_index_that_does_not_fit_is_found(data: Path) -> None:
    path = index_path(data, 10)
    index = Index.decode(path.read_bytes())
    assert index is not None
    index.events += 1
    path.write_bytes(index.encode())

    (damage,) = check(data, 1).damages

    assert damage.reason == "index does not fit its segment"


def test_a_lost_index_is_no_damage(data: Path) -> None:
    index_path(data, 10).unlink()

    assert check(data, 1).damages == []


def test_a_lost_frame_at_the_end_is_a_hole(data: Path) -> None:
    path = segments(data)[1]
    path.write_bytes(path.read_bytes()[: last_frame(data, 1)])

    damages = check(data, 1).damages

    assert [one.reason for one in damages] == [
        "offsets are missing",
        "index does not fit its segment",
    ]
    assert (damages[0].first_offset, damages[0].end_offset) == (18, 20)


def test_a_lost_segment_is_a_hole(data: Path) -> None:
    segments(data)[1].unlink()

    (damage,) = check(data, 0).damages

    assert (damage.first_offset, damage.end_offset) == (10, 20)


def test_frames_in_the_wrong_order_are_found(data: Path) -> None:
    path = segments(data)[3]
    whole, last = path.read_bytes(), last_frame(data, 3)
    size = len(whole) - last
    start = last - 4 * size
    swapped = whole[last:] + whole[start + size : last] + whole[start : start + size]
    path.write_bytes(whole[:start] + swapped)

    reasons = [one.reason for one in check(data, 3).damages]

    assert reasons[0] == "frame goes back to offset 32"


@pytest.mark.parametrize("flags", [0, FrameFlag.GAPS])
def test_offsets_that_do_not_fit_their_frame_are_found(data: Path, flags: int) -> None:
    path, last = segments(data)[3], last_frame(data, 3)
    batch = Batch.of("t", path.read_bytes()[last:])
    events = batch.take([0, 1]) if flags else Columns([b"one", b"two"], 1019)
    wrong = Batch.of("t", frame_of(events, 38, bytes(16)))
    header = wrong.header._replace(span=1 if flags else 3)
    bad = build([wrong.body], header)
    path.write_bytes(path.read_bytes()[:last] + bad)

    with Reader.open(data) as reader:
        topic = reader.topic("t")
        topic.segments[3].length = last + len(bad)
        damages = check_of(data, topic, 3).damages

    assert [one.reason for one in damages] == ["offsets of a frame do not fit its span"]


def test_a_compacted_topic_may_have_holes(data: Path) -> None:
    with Log.open(data) as log:
        log.compact("t")

    results = [check(data, number) for number in range(4)]

    assert [result.damages for result in results] == [[], [], [], []]
    assert [result.events for result in results] == [0, 0, 0, 2]


def test_a_topic_with_the_option_to_compact_may_have_holes(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t", TopicOptions(compact=True))
        for number in range(6):
            log.append("t", Columns([b"x"], 1000, keys=[b"%d" % (number // 2)]))
            log.commit()
        log.maintain()

    assert check(tmp_path, 0).damages == []
    assert check(tmp_path, 0).events == 3


def check(data: Path, number: int) -> VerifyResult:
    with Reader.open(data) as reader:
        return check_of(data, reader.topic("t"), number)


def check_of(data: Path, topic: TopicLog, number: int) -> VerifyResult:
    tally = Tally(lambda _: None)
    layout = Layout(str(data))
    SegmentCheck(Files(), layout, topic, topic.segments[number], tally).run()
    return tally.result()


def segments(data: Path) -> list[Path]:
    return sorted((data / "topics").glob("*/*.seg"))


def index_path(data: Path, base_offset: int) -> Path:
    return Path(index_file(str(segments(data)[0].parent), base_offset))


def last_frame(data: Path, number: int) -> int:
    """Where the last frame of a segment begins."""
    with Reader.open(data) as reader:
        topic = reader.topic("t")
        return list(topic.frames_of(topic.segments[number]))[-1].position


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
