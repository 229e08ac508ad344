from __future__ import annotations

import pytest

from penstock.wire.lines import TOO_LONG, LineSplitter

# (what is fed, what comes out, what is held at the end), limit 8 bytes
CASES: list[tuple[list[bytes], list[bytes], bytes]] = [
    ([], [], b""),
    ([b""], [], b""),
    ([b"a\n"], [b"a"], b""),
    ([b"\n\n"], [b"", b""], b""),
    ([b"a\r\nb\n"], [b"a\r", b"b"], b""),
    ([b"a", b"b", b"\n"], [b"ab"], b""),
    ([b"a\nb", b"c\nd"], [b"a", b"bc"], b"d"),
    ([b"12345678\n"], [b"12345678"], b""),
    ([b"123456789\n"], [TOO_LONG], b""),
    ([b"12345678\r\n"], [TOO_LONG], b""),
    ([b"1234", b"5678", b"\n"], [b"12345678"], b""),
    ([b"1234", b"56789", b"0\nnext\n"], [TOO_LONG, b"next"], b""),
    ([b"12345678", b"9\n"], [TOO_LONG], b""),
    ([b"a\n123456789\nb\n123456789"], [b"a", TOO_LONG, b"b"], b""),
    ([b"123456789", b"\n", b"ok\n"], [TOO_LONG, b"ok"], b""),
]


@pytest.mark.parametrize(("pieces", "lines", "rest"), CASES)
def test_lines_come_out_as_they_end(
    pieces: list[bytes], lines: list[bytes], rest: bytes
) -> None:
    splitter = LineSplitter(8)

    found = [line for piece in pieces for line in splitter.feed(piece)]

    assert found == lines
    assert splitter.rest == rest


@pytest.mark.parametrize(("pieces", "lines", "rest"), CASES)
def test_lines_are_the_same_byte_by_byte(
    pieces: list[bytes], lines: list[bytes], rest: bytes
) -> None:
    splitter = LineSplitter(8)

    found = [line for byte in b"".join(pieces) for line in splitter.feed(bytes([byte]))]

    assert found == lines
    assert splitter.rest == rest


def test_a_line_that_is_too_long_says_so_at_its_end_only() -> None:
    splitter = LineSplitter(8)

    assert splitter.feed(b"x" * 9) == []
    assert splitter.overlong
    assert splitter.rest == b""
    assert splitter.feed(b"x\n") == [TOO_LONG]
    assert not splitter.overlong


def test_no_line_can_be_taken_for_too_long() -> None:
    assert TOO_LONG not in LineSplitter(8).feed(b"\n\r\n \n\n")
