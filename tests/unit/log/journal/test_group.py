from __future__ import annotations

import pytest

from penstock.log.journal import group
from penstock.log.journal.group import EntryKind, GroupHeader, JournalEntry
from tests.unit.log.faults import flipped, zeroed

GOLDEN = bytes.fromhex(
    "504e534a"  # magic "PNSJ"
    "01000000"  # version, three zeros
    "70000000"  # length: 112
    "964b4f47"  # CRC32C
    "0010000000000000"  # position
    "0004000000000000"  # synced
    "8877665544332211"  # stamp of the file
    "0900000000000000"  # group number
    "d204000000000000"  # time of writing
    "02000000"  # two entries
    "00000000"
    "0800000001000000"  # 8 bytes, kind EVENTS
    "0300000000000000"  # topic 3
    "3132333435363738"
    "0300000000010000"  # 3 bytes, kind 256
    "0000000000000000"  # no topic
    "78797a0000000000"  # zeros to a multiple of 8
)
ENTRIES = [JournalEntry(EntryKind.EVENTS, 3, b"12345678"), JournalEntry(256, 0, b"xyz")]
HEADER = GroupHeader(
    length=112,
    crc=0x474F4B96,
    position=4096,
    synced=1024,
    stamp=0x1122334455667788,
    number=9,
    time_ms=1234,
    entries=2,
)


def is_group(data: bytes) -> bool:
    header = group.peek(data, 0)
    return header is not None and group.intact(memoryview(data), 0, header)


def test_bytes_of_a_group_are_those_of_the_table() -> None:
    buffers = group.encode(
        ENTRIES,
        position=4096,
        synced=1024,
        stamp=0x1122334455667788,
        number=9,
        time_ms=1234,
    )

    assert b"".join(buffers) == GOLDEN


def test_header_reads_back_from_the_bytes_of_the_table() -> None:
    assert group.peek(GOLDEN, 0) == HEADER
    assert HEADER.end == 4208
    assert group.intact(memoryview(GOLDEN), 0, HEADER)


def test_entries_read_back_from_any_place_in_a_block() -> None:
    block = memoryview(bytes(24) + GOLDEN)

    entries = [entry for entry, _ in group.entries_of(block, 24, HEADER)]

    assert entries == ENTRIES


def test_entries_tell_where_in_the_group_their_data_lies() -> None:
    block = memoryview(bytes(24) + GOLDEN)

    places = [place for _, place in group.entries_of(block, 24, HEADER)]

    assert places == [80, 104]


def test_every_flipped_bit_is_detected() -> None:
    undetected = [name for name, data in flipped(GOLDEN) if is_group(data)]

    assert undetected == []


def test_group_torn_anywhere_and_completed_by_zeros_is_no_group() -> None:
    taken = [length for length, data in zeroed(GOLDEN) if is_group(data)]

    assert taken == []


@pytest.mark.parametrize("length", [8, 64, 80, 4096])
def test_zeros_are_never_a_group(length: int) -> None:
    assert group.peek(bytes(length), 0) is None


@pytest.mark.parametrize(
    ("what", "position", "data"),
    [
        ("another magic", 0, b"PNSX"),
        ("another version", 4, b"\x02"),
        ("a length shorter than its header", 8, b"\x38\0\0\0"),
        ("a length that is no multiple of 8", 8, b"\x71\0\0\0"),
    ],
)
def test_header_that_cannot_be_one_is_not_taken_up(
    what: str, position: int, data: bytes
) -> None:
    changed = GOLDEN[:position] + data + GOLDEN[position + len(data) :]

    assert group.peek(changed, 0) is None, what


def test_header_cut_short_is_not_taken_up() -> None:
    assert group.peek(GOLDEN[:63], 0) is None


def test_group_that_continues_behind_the_block_is_not_intact() -> None:
    assert not group.intact(memoryview(GOLDEN[:104]), 0, HEADER)


def test_kinds_of_the_log_lie_below_those_of_owners() -> None:
    assert max(EntryKind) < group.FIRST_OWNED <= group.LAST_OWNED
