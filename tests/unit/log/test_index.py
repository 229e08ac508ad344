from __future__ import annotations

import pytest

from penstock.log import frame_of
from penstock.log.frame import FrameHeader, peek
from penstock.log.index import INTERVAL_BYTES, Index
from penstock.model.columns import Columns
from tests.unit.log.faults import flipped, zeroed

GOLDEN = bytes.fromhex(
    "504e5349"  # magic "PNSI"
    "01000000"  # version, three zeros
    "40000000"  # length of the file: 64
    "ffbb341a"  # CRC32C
    "0800000000000000"  # end offset
    "9800000000000000"  # length of the segment: 152
    "0100000000000000"  # number of events
    "0700000000000000"  # entry: offset
    "4000000000000000"  # position
    "0500000000000000"  # largest timestamp so far
)


def header(base: int, timestamp_ms: int, length: int = 88) -> FrameHeader:
    found = peek(frame_of(Columns([b"hi"], timestamp_ms), base, bytes(16)), 0)
    assert found is not None
    return found._replace(length=length)


def golden() -> Index:
    index = Index(length=64, end_offset=7)
    index.add(64, header(7, 5))
    return index


def stretches() -> Index:
    """Three entries: offsets 0, 2, 4; times 10 and 50, 20 and 30, 40 and 90."""
    index = Index(length=48, end_offset=0)
    position = 48
    for offset, timestamp_ms in enumerate([10, 50, 20, 30, 40, 90]):
        index.add(position, header(offset, timestamp_ms, INTERVAL_BYTES // 2))
        position += INTERVAL_BYTES // 2
    return index


def test_bytes_of_an_index_are_those_of_the_table() -> None:
    assert golden().encode() == GOLDEN


def test_index_reads_back_from_the_bytes_of_the_table() -> None:
    index = Index.decode(GOLDEN)

    assert index == golden()
    assert index is not None
    assert (index.end_offset, index.length, index.events) == (8, 152, 1)
    assert index.max_timestamp_ms == 5


def test_indexes_of_different_segments_differ() -> None:
    assert golden() != stretches()
    assert golden() != GOLDEN


def test_every_flipped_bit_is_detected() -> None:
    undetected = [n for n, data in flipped(GOLDEN) if Index.decode(data) is not None]

    assert undetected == []


def test_index_torn_anywhere_is_none() -> None:
    torn = [GOLDEN[:length] for length in range(len(GOLDEN))]
    torn += [data for _, data in zeroed(GOLDEN)]

    assert [data for data in torn if Index.decode(data) is not None] == []


def test_zeros_are_never_an_index() -> None:
    assert Index.decode(bytes(64)) is None


@pytest.mark.parametrize(
    ("offset", "position"),
    [
        (0, 48),
        (1, 48),
        (2, 48 + INTERVAL_BYTES),
        (3, 48 + INTERVAL_BYTES),
        (4, 48 + 2 * INTERVAL_BYTES),
        (99, 48 + 2 * INTERVAL_BYTES),
    ],
)
def test_offset_is_looked_for_from_the_stretch_it_lies_in(
    offset: int, position: int
) -> None:
    assert stretches().position_of(offset) == position


def test_offset_in_front_of_the_first_entry_is_looked_for_from_the_start() -> None:
    assert golden().position_of(3) is None


@pytest.mark.parametrize(
    ("timestamp_ms", "position"),
    [
        (-5, 48),
        (10, 48),
        (50, 48),
        (51, 48 + 2 * INTERVAL_BYTES),
        (90, 48 + 2 * INTERVAL_BYTES),
        (91, None),
    ],
)
def test_time_is_looked_for_from_the_first_stretch_that_reaches_it(
    timestamp_ms: int, position: int | None
) -> None:
    assert stretches().position_at(timestamp_ms) == position


def test_empty_index_finds_nothing() -> None:
    index = Index(length=48, end_offset=3)

    assert index.position_of(3) is None
    assert index.position_at(0) is None
    assert Index.decode(index.encode()) == index


def test_latest_time_of_an_empty_index_is_before_all_others() -> None:
    assert Index(length=48, end_offset=0).max_timestamp_ms < -(10**15)


def test_stretches_survive_being_stored() -> None:
    assert Index.decode(stretches().encode()) == stretches()
