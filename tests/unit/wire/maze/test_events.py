from __future__ import annotations

import pytest

from penstock.errors import RemoteProtocolError
from penstock.wire.lines import TOO_LONG
from penstock.wire.maze.events import (
    BROADCAST,
    FOLLOW,
    MAX_NUMBER,
    PRIVATE,
    STATUS,
    UNFOLLOW,
    Bad,
    MazeRow,
    parse,
    parse_client_id,
)

GOOD: list[tuple[bytes, MazeRow]] = [
    (b"666|F|60|50", (666, FOLLOW, 60, 50)),
    (b"1|U|12|9", (1, UNFOLLOW, 12, 9)),
    (b"542532|B", (542532, BROADCAST, 0, 0)),
    (b"43|P|32|56", (43, PRIVATE, 32, 56)),
    (b"634|S|32", (634, STATUS, 32, 0)),
    (b"635|S|0", (635, STATUS, 0, 0)),
    (b"%d|F|%d|%d" % ((MAX_NUMBER,) * 3), (MAX_NUMBER, FOLLOW, MAX_NUMBER, MAX_NUMBER)),
    (b"007|P|01|00", (7, PRIVATE, 1, 0)),
]
NO_SEQ = f"sequence number is not from 1 to {MAX_NUMBER}"
NO_USER = f"user is not a number from 0 to {MAX_NUMBER}"
NO_TYPE = "type is not one of F, U, B, P, S"
BAD: list[tuple[bytes, int | None, str]] = [
    (b"", None, NO_SEQ),
    (b"\r", None, NO_SEQ),
    (b"hello", None, NO_SEQ),
    (b"0|B", None, NO_SEQ),
    (b"-1|B", None, NO_SEQ),
    (b"+1|B", None, NO_SEQ),
    (b" 1|B", None, NO_SEQ),
    (b"1_0|B", None, NO_SEQ),
    (b"1.0|B", None, NO_SEQ),
    (b"|B", None, NO_SEQ),
    (b"1\xff|B", None, NO_SEQ),
    (b"%d|B" % (MAX_NUMBER + 1), None, NO_SEQ),
    (b"1" * 5000 + b"|B", None, NO_SEQ),
    (b"1", 1, "type is missing"),
    (b"1|", 1, NO_TYPE),
    (b"1|X|2|3", 1, NO_TYPE),
    (b"1|f|2|3", 1, NO_TYPE),
    (b"1|FF|2|3", 1, NO_TYPE),
    (b"1|66", 1, NO_TYPE),
    (b"1|70|2|3", 1, NO_TYPE),
    (b"1|B ", 1, NO_TYPE),
    (b"1|B|2", 1, "3 fields: type B has 2"),
    (b"1|B|", 1, "3 fields: type B has 2"),
    (b"1|S", 1, "2 fields: type S has 3"),
    (b"1|S|2|3", 1, "4 fields: type S has 3"),
    (b"1|F|2", 1, "3 fields: type F has 4"),
    (b"1|F|2|3|4", 1, "5 fields: type F has 4"),
    (b"1|F|2|3],[4|B", 1, "5 fields: type F has 4"),
    (b"1|F||3", 1, NO_USER),
    (b"1|F|2|", 1, NO_USER),
    (b"1|P|2|x", 1, NO_USER),
    (b"1|P|2|3\r\r", 1, NO_USER),
    (b"1|S|%d" % (MAX_NUMBER + 1), 1, NO_USER),
]


@pytest.mark.parametrize("end", [b"", b"\r"])
@pytest.mark.parametrize(("line", "row"), GOOD)
def test_event_is_parsed_and_its_bytes_kept(
    line: bytes, row: MazeRow, end: bytes
) -> None:
    raw = line + end + b"\n"

    assert parse([line + end]) == ([row], [raw], [])
    assert parse([line + end, b"junk"]).rows == [row]
    assert parse([line + end, b"junk"]).raws == [raw]


@pytest.mark.parametrize(("line", "seq", "reason"), BAD, ids=range(len(BAD)))
def test_other_line_is_bad_for_a_reason(
    line: bytes, seq: int | None, reason: str
) -> None:
    raw = line + b"\n"

    assert parse([line]) == ([], [], [Bad(raw, seq, reason)])
    assert parse([b"9|B", line, b"8|B"]).rows == [
        (9, BROADCAST, 0, 0),
        (8, BROADCAST, 0, 0),
    ]


def test_a_batch_is_each_of_its_lines() -> None:
    parsed = parse([line for line, _ in GOOD[:-1]])

    assert parsed.rows == [row for _, row in GOOD[:-1]]
    assert parsed.raws == [line + b"\n" for line, _ in GOOD[:-1]]
    assert parse([]) == ([], [], [])


def test_a_line_that_was_too_long_is_bad() -> None:
    parsed = parse([b"1|B", TOO_LONG, b"2|B"])

    assert [row[0] for row in parsed.rows] == [1, 2]
    assert parsed.bad == [Bad(b"", None, "line is too long")]


@pytest.mark.parametrize(
    ("line", "id"), [(b"2932\r", 2932), (b"0", 0), (b" 7 ", 7), (b"007", 7)]
)
def test_client_says_its_number(line: bytes, id: int) -> None:
    assert parse_client_id(line) == id


@pytest.mark.parametrize(
    "line", [b"", b"\r", b"bob", b"-1", b"1 2", b"9" * 20, b"\xff"]
)
def test_other_client_is_refused(line: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="client id is '"):
        parse_client_id(line)
