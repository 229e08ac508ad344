from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.log import frame_of
from penstock.log.frame import HEADER_BYTES, peek
from penstock.log.tail import Tail, TailFrame, TailPart
from penstock.model.columns import Columns


def frame(base: int, count: int = 2) -> TailFrame:
    data = frame_of(Columns([b"x"] * count), base, bytes(16))
    header = peek(data, 0)
    assert header is not None
    return TailFrame(header, memoryview(data)[HEADER_BYTES:])


LENGTH = frame(0).header.length


@pytest.fixture
def tail() -> Tail:
    """Frames of two events at 10, 12, 14 and 16."""
    tail = Tail()
    for base in (10, 12, 14, 16):
        tail.append(frame(base))
    return tail


def written(tail: Tail, count: int) -> None:
    tail.mark_written(count, [part.frame() for part in tail.unwritten()[:count]])


def bases(parts: Sequence[TailPart]) -> list[int]:
    return [one.base_offset for one in parts]


@pytest.mark.parametrize(
    ("offset", "max_bytes", "at_least_one", "found"),
    [
        (10, 1 << 20, False, [10, 12, 14, 16]),
        (11, 1 << 20, False, [10, 12, 14, 16]),
        (13, 1 << 20, False, [12, 14, 16]),
        (5, 1 << 20, False, [10, 12, 14, 16]),
        (18, 1 << 20, True, []),
        (10, 2 * LENGTH, False, [10, 12]),
        (10, 2 * LENGTH - 1, False, [10]),
        (10, 0, False, []),
        (10, 0, True, [10]),
    ],
)
def test_frames_are_found_from_an_offset_within_a_limit(
    tail: Tail, offset: int, max_bytes: int, at_least_one: bool, found: list[int]
) -> None:
    frames = tail.since(offset, max_bytes, at_least_one=at_least_one)

    assert bases(frames) == found


def test_written_frames_may_be_dropped_and_others_not(tail: Tail) -> None:
    written(tail, 2)

    freed = tail.drop_written(99)

    assert freed == 2 * LENGTH
    assert tail.start_offset == 14
    assert bases(tail.unwritten()) == [14, 16]
    assert tail.drop_written(99) == 0


def test_oldest_frames_are_dropped_first(tail: Tail) -> None:
    written(tail, 3)

    tail.drop_written(1)

    assert bases(tail.since(0, 1 << 20, at_least_one=False)) == [12, 14, 16]
    assert bases(tail.unwritten()) == [16]


def test_written_parts_become_the_frames_they_were_gathered_into(tail: Tail) -> None:
    tail.mark_written(3, [frame(10, 6)])

    assert bases(tail.since(13, 1 << 20, at_least_one=False)) == [10, 16]
    assert bases(tail.unwritten()) == [16]
    assert tail.drop_written(1) == frame(10, 6).size
    assert tail.start_offset == 16


def test_clear_tells_what_was_written_and_what_was_not(tail: Tail) -> None:
    written(tail, 1)

    sizes = tail.clear()

    assert sizes == (LENGTH, 3 * LENGTH)
    assert (tail.start_offset, tail.unwritten()) == (None, [])
    assert tail.clear() == (0, 0)


def test_cut_forgets_the_frames_from_an_offset_on(tail: Tail) -> None:
    tail.cut(14)

    assert bases(tail.unwritten()) == [10, 12]


def test_empty_tail_has_nothing() -> None:
    tail = Tail()

    assert tail.start_offset is None
    assert tail.since(0, 1 << 20, at_least_one=True) == []


def test_bytes_that_wait_are_counted(tail: Tail) -> None:
    written(tail, 1)

    assert tail.unwritten_bytes == 3 * LENGTH
