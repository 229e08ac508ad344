from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import CorruptRecord, UnsupportedVersion
from penstock.files import Files
from penstock.log import frame_of, segment
from penstock.log.frame import checksum
from penstock.log.index import Index
from penstock.log.segment import SegmentHeader
from penstock.model.columns import Columns
from penstock.model.topic import MAX_TOPIC_NAME_BYTES
from tests.unit.log.faults import flipped, zeroed

GOLDEN = bytes.fromhex(
    "504e5353"  # magic "PNSS"
    "01000000"  # version, three zeros
    "40000000"  # length of this header: 64
    "65892aaf"  # CRC32C
    "4d00000000000000"  # base offset
    "0300000000000000"  # topic id
    "d204000000000000"  # time of creation
    "09000000"  # length of the name
    "00000000"
    "6f72646572732fc3"  # "orders/é" in UTF-8
    "a900000000000000"  # zeros to a multiple of 8
)
Damages = list[tuple[int, int, str, int]]


def is_header(data: bytes) -> bool:
    try:
        segment.decode_header(data, "s")
    except CorruptRecord:
        return False
    return True


def test_bytes_of_a_header_are_those_of_the_table() -> None:
    assert segment.encode_header(77, 3, 1234, "orders/é") == GOLDEN


def test_header_reads_back_from_the_bytes_of_the_table() -> None:
    assert segment.decode_header(GOLDEN + b"frames", "s") == SegmentHeader(
        length=64, base_offset=77, topic_id=3, created_ms=1234, topic="orders/é"
    )


def test_every_flipped_bit_is_detected() -> None:
    undetected = [name for name, data in flipped(GOLDEN) if is_header(data)]

    assert undetected == []


def test_header_torn_anywhere_is_no_header() -> None:
    torn = [GOLDEN[:length] for length in range(len(GOLDEN))]
    torn += [data for _, data in zeroed(GOLDEN)]

    assert [data for data in torn if is_header(data)] == []


def test_zeros_are_never_a_header() -> None:
    assert not is_header(bytes(4096))


def test_later_version_is_refused_and_not_taken_for_damage() -> None:
    data = bytearray(GOLDEN)
    data[4] = 2
    data[12:16] = checksum(data, ()).to_bytes(4, "little")

    with pytest.raises(UnsupportedVersion):
        segment.decode_header(bytes(data), "s")


def test_longest_name_is_read_from_a_file(tmp_path: Path) -> None:
    name = "x" * MAX_TOPIC_NAME_BYTES
    path = tmp_path / "s"
    path.write_bytes(segment.encode_header(0, 1, 0, name) + bytes(5000))

    assert segment.read_header(Files(), str(path), "s").topic == name


def frames_file(tmp_path: Path, count: int = 4) -> tuple[Path, list[int]]:
    """A segment of frames of two events each, and where they begin."""
    data = segment.encode_header(0, 1, 0, "t")
    positions = []
    for number in range(count):
        positions.append(len(data))
        events = Columns([b"%d" % number * 50] * 2, number)
        data += frame_of(events, 2 * number, bytes(16))
    path = tmp_path / "s"
    path.write_bytes(data)
    return path, [*positions, len(data)]


def read(
    path: Path, start: int, end: int, read_bytes: int = segment.READ_BYTES
) -> tuple[list[int], Damages]:
    """Base offsets of the frames found, and the damage met."""
    damages: Damages = []
    files = Files()
    handle = files.open(str(path))
    try:
        found = segment.frames(
            files,
            handle,
            position=start,
            end=end,
            on_damage=lambda *what: damages.append(what),
            read_bytes=read_bytes,
        )
        return [one.header.base_offset for one in found], damages
    finally:
        files.close(handle)


@pytest.mark.parametrize("read_bytes", [1, 64, 100, 200, 1 << 20])
def test_frames_are_the_same_in_blocks_of_any_size(
    tmp_path: Path, read_bytes: int
) -> None:
    path, at = frames_file(tmp_path)

    assert read(path, at[0], at[-1], read_bytes) == ([0, 2, 4, 6], [])


def test_frames_begin_and_end_where_told(tmp_path: Path) -> None:
    path, at = frames_file(tmp_path)

    assert read(path, at[1], at[3]) == ([2, 4], [])


@pytest.mark.parametrize("read_bytes", [64, 1 << 20])
@pytest.mark.parametrize("where", [0, 9, 20, 70, 150])
def test_damaged_frame_is_left_out_and_the_rest_is_read(
    tmp_path: Path, where: int, read_bytes: int
) -> None:
    path, at = frames_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[at[1] + where] ^= 0x10
    path.write_bytes(data)

    found, damages = read(path, at[0], at[-1], read_bytes)

    assert found == [0, 4, 6]
    assert damages == [(at[1], at[2] - at[1], "frame fails its checksum", 4)]


def test_damaged_last_frame_is_left_out(tmp_path: Path) -> None:
    path, at = frames_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)

    found, damages = read(path, at[0], at[-1])

    assert found == [0, 2, 4]
    assert damages == [(at[3], at[4] - at[3], "frame fails its checksum", -1)]


def test_zeros_between_frames_are_damage(tmp_path: Path) -> None:
    path, at = frames_file(tmp_path)
    data = bytearray(path.read_bytes())
    data[at[1] : at[3]] = bytes(at[3] - at[1])
    path.write_bytes(data)

    found, damages = read(path, at[0], at[-1])

    assert found == [0, 6]
    assert damages == [(at[1], at[3] - at[1], "frame fails its checksum", 6)]


def test_frame_whose_text_looks_like_a_frame_does_not_mislead(tmp_path: Path) -> None:
    inner = frame_of(Columns([b"inner"]), 99, bytes(16))
    outer = frame_of(Columns([b"x" + inner + b"PNSB"]), 0, bytes(16))
    follower = frame_of(Columns([b"follower"]), 1, bytes(16))
    damaged = bytearray(outer)
    damaged[100] ^= 1
    path = tmp_path / "s"
    path.write_bytes(damaged + follower)

    found, damages = read(path, 0, len(outer + follower))

    assert found == [1]
    assert damages == [(0, len(outer), "frame fails its checksum", 1)]


@pytest.mark.parametrize("cut", [1, 3, 4])
def test_file_that_ends_too_early_is_damage(tmp_path: Path, cut: int) -> None:
    path, at = frames_file(tmp_path)
    path.write_bytes(path.read_bytes()[: at[cut]])

    found, damages = read(path, at[0], at[-1] + 8)

    assert found == [0, 2, 4, 6][:cut]
    assert damages == [(at[cut], at[-1] + 8 - at[cut], "the file ends too early", -1)]


def test_index_is_built_from_the_frames(tmp_path: Path) -> None:
    path, at = frames_file(tmp_path)
    files = Files()
    handle = files.open(str(path))

    index = segment.build_index(
        files,
        handle,
        start=at[0],
        base_offset=0,
        end=at[-1],
        on_damage=lambda *_: pytest.fail("there is none"),
    )

    files.close(handle)
    assert (index.end_offset, index.length, index.events) == (8, at[-1], 8)
    assert index.position_of(0) == at[0]
    assert index.max_timestamp_ms == 3
    assert isinstance(index, Index)
