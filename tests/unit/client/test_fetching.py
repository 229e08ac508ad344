from __future__ import annotations

import pytest

from penstock.client.fetching import Range, checked
from penstock.errors import RemoteProtocolError
from penstock.log import Columns, frame_of
from penstock.log.frame import HEADER_BYTES, FrameHeader, pack, peek, seal
from penstock.wire.native import Fetched


def frame(base: int, count: int = 4) -> bytes:
    payloads = [b"%d" % (base + number) for number in range(count)]
    return bytes(frame_of(Columns(payloads), base, bytes(16)))


def resealed(data: bytes, **changes: int) -> bytes:
    """The frame with another header and the right checksum."""
    header: FrameHeader | None = peek(data, 0)
    assert header is not None
    body = data[HEADER_BYTES:]
    return pack(seal(header._replace(**changes), body)) + body  # type: ignore[arg-type]


def answer(*frames: bytes, goes_on: int = 8, end: int = 12) -> Fetched:
    return Fetched(1, list(frames), goes_on, 0, end)


def payloads(part: Range) -> list[bytes]:
    return [payload for batch in part.batches for payload in batch.payloads()]


def test_views_are_of_the_range_only() -> None:
    part = checked(answer(frame(0), frame(4), goes_on=6), "t", 2, 6)

    assert payloads(part) == [b"2", b"3", b"4", b"5"]
    assert (part.topic, part.next_offset, part.end_offset) == ("t", 6, 12)
    assert [batch.topic for batch in part.batches] == ["t", "t"]


def test_a_frame_without_events_in_the_range_is_left_out() -> None:
    columns = Columns([b"a", b"b"])
    columns.offsets = [0, 3]
    gaps = bytes(frame_of(columns, 0, bytes(16)))

    part = checked(answer(gaps, goes_on=3), "t", 1, 3)

    assert (part.batches, part.next_offset) == ([], 3)


def test_nothing_is_left_at_the_end() -> None:
    part = checked(answer(goes_on=12), "t", 12, 20)

    assert (part.batches, part.next_offset) == ([], 12)


def test_a_flipped_bit_anywhere_is_the_fault_of_the_server() -> None:
    whole = frame(4)

    for at in range(len(whole)):
        bad = bytearray(whole)
        bad[at] ^= 1 << (at % 8)
        with pytest.raises(RemoteProtocolError, match="native protocol: Fetched: "):
            checked(answer(bytes(bad)), "t", 4, 8)


@pytest.mark.parametrize(
    "junk",
    [
        answer(b""),
        answer(b"junk"),
        answer(frame(4)[:-8]),
        answer(frame(4) + bytes(8)),
        answer(resealed(frame(4), columns=9)),
        answer(resealed(frame(4), columns=60_000)),
        answer(resealed(frame(4), columns=0)),
        answer(resealed(frame(4), span=0)),
        answer(frame(0), goes_on=4),
        answer(frame(8), goes_on=8),
        answer(frame(4), frame(4)),
        answer(frame(6, 2), frame(4, 2)),
        answer(frame(4, 2), frame(5, 3)),
        answer(frame(4), goes_on=7),
        answer(frame(4), goes_on=9),
        answer(goes_on=5),
        answer(goes_on=3, end=3),
    ],
    ids=range(17),
)
def test_junk_is_the_fault_of_the_server(junk: Fetched) -> None:
    with pytest.raises(RemoteProtocolError, match="native protocol: Fetched: "):
        checked(junk, "t", 4, 8)
