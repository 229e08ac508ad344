from __future__ import annotations

import pytest

from penstock.log import frame, frame_of
from penstock.log.frame import FrameHeader
from penstock.model.columns import Columns
from tests.unit.log.faults import flipped, zeroed

GOLDEN = bytes.fromhex(
    "504e5342"  # magic "PNSB"
    "01"  # version
    "00"  # flags: no gaps
    "0100"  # one column
    "58000000"  # length: 88
    "0af6d820"  # CRC32C
    "0700000000000000"  # base offset
    "01000000"  # one event
    "01000000"  # span
    "0500000000000000"  # smallest timestamp
    "0500000000000000"  # largest timestamp
    "000102030405060708090a0b0c0d0e0f"  # id base
    "06020000"  # column PAYLOAD, encoding PLAIN
    "0a000000"  # ten bytes: two offsets and the payload
    "00000000"  # the payload begins
    "02000000"  # and ends
    "6869000000000000"  # "hi", zeros to a multiple of 8
)
HEADER = FrameHeader(
    flags=0,
    columns=1,
    length=88,
    crc=0x20D8F60A,
    base_offset=7,
    events=1,
    span=1,
    min_timestamp_ms=5,
    max_timestamp_ms=5,
    id_base=bytes(range(16)),
)


def is_frame(data: bytes, position: int = 0) -> bool:
    header = frame.peek(data, position)
    return header is not None and frame.intact(memoryview(data), position, header)


def test_bytes_of_a_frame_are_those_of_the_table() -> None:
    assert frame_of(Columns([b"hi"], 5), 7, bytes(range(16))) == GOLDEN


def test_header_reads_back_from_the_bytes_of_the_table() -> None:
    header = frame.peek(GOLDEN, 0)

    assert header == HEADER
    assert HEADER.end_offset == 8


def test_checksum_is_crc32c_of_all_but_its_own_four_bytes() -> None:
    data = b"12345678" + b"9" + bytes(3)

    with_marker = frame.checksum(data + b"\xff\xff\xff\xff", ())
    without = frame.checksum(data + b"\x00\x00\x00\x00", ())

    assert with_marker == without
    # The check value of the CRC-32C (Castagnoli) catalogue entry, in two parts.
    assert frame.checksum(b"", [b"1234", b"56789"]) == 0xE3069283


def test_every_flipped_bit_is_detected() -> None:
    undetected = [name for name, data in flipped(GOLDEN) if is_frame(data)]

    assert undetected == []


def test_frame_torn_anywhere_and_completed_by_zeros_is_no_frame() -> None:
    taken = [length for length, data in zeroed(GOLDEN) if is_frame(data)]

    assert taken == []


@pytest.mark.parametrize("length", [8, 16, 64, 72, 88, 4096])
def test_zeros_are_never_a_frame(length: int) -> None:
    assert frame.peek(bytes(length), 0) is None


def changed(position: int, data: bytes) -> bytes:
    return GOLDEN[:position] + data + GOLDEN[position + len(data) :]


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("another magic", changed(0, b"PNSX")),
        ("another version", changed(4, b"\x02")),
        ("no events", changed(24, bytes(4))),
        ("a length of nothing but a header", changed(8, b"\x40\0\0\0")),
        ("a length that is no multiple of 8", changed(8, b"\x59\0\0\0")),
        ("a length over the maximum", changed(8, b"\x08\0\0\x10")),
        ("a header cut short", GOLDEN[:63]),
    ],
)
def test_header_that_cannot_be_one_is_not_taken_up(what: str, data: bytes) -> None:
    assert frame.peek(data, 0) is None, what


def test_frame_is_found_at_its_position_in_a_block() -> None:
    block = b"junkjunk" + GOLDEN + b"more"

    assert is_frame(block, 8)
    assert not is_frame(block, 0)


def test_frame_that_continues_behind_the_block_is_not_intact() -> None:
    assert not frame.intact(memoryview(GOLDEN[:80]), 0, HEADER)


@pytest.mark.parametrize(("length", "zeros"), [(0, 0), (1, 7), (7, 1), (8, 0), (9, 7)])
def test_padding_reaches_the_next_multiple_of_eight(length: int, zeros: int) -> None:
    assert frame.padding(length) == bytes(zeros)
