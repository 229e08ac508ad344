"""Bytes as PostgreSQL sends them; tests/unit/cdc/test_postgres.py has a real one."""

from __future__ import annotations

import contextlib
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cdc.pgoutput import (
    UNCHANGED,
    Begin,
    CommitMessage,
    Delete,
    Insert,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    decode,
    lsn_of,
    lsn_text,
)
from penstock.errors import RemoteProtocolError

TUPLE = pack("!h", 3) + b"n" + b"u" + b"t" + pack("!i", 2) + b"hi"
VALUES = (None, UNCHANGED, b"hi")
YEAR_2000_MS = 946_684_800_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"B" + pack("!qqi", 77, 5_000_000, 9), Begin(77, YEAR_2000_MS + 5000)),
        (b"C" + pack("!bqqq", 0, 77, 99, 0), CommitMessage(77, 99)),
        (
            b"R"
            + pack("!i", 7)
            + b"public\0t\0"
            + pack("!bh", 102, 1)
            + b"\1id\0"
            + pack("!ii", 23, -1),
            Relation(7, "public", "t", "f", (RelationColumn("id", 23, True),)),
        ),
        (b"I" + pack("!i", 7) + b"N" + TUPLE, Insert(7, VALUES)),
        (b"U" + pack("!i", 7) + b"N" + TUPLE, Update(7, None, False, VALUES)),
        (
            b"U" + pack("!i", 7) + b"O" + TUPLE + b"N" + TUPLE,
            Update(7, VALUES, True, VALUES),
        ),
        (
            b"U" + pack("!i", 7) + b"K" + TUPLE + b"N" + TUPLE,
            Update(7, VALUES, False, VALUES),
        ),
        (b"D" + pack("!i", 7) + b"K" + TUPLE, Delete(7, VALUES, False)),
        (b"D" + pack("!i", 7) + b"O" + TUPLE, Delete(7, VALUES, True)),
        (b"T" + pack("!ibii", 2, 0, 7, 8), Truncate((7, 8))),
        (b"Y" + pack("!i", 1) + b"public\0kind\0", None),
        (b"O" + pack("!q", 1) + b"origin\0", None),
    ],
)
def test_messages_are_read(data: bytes, message: object) -> None:
    assert decode(data) == message


@pytest.mark.parametrize("kind", [b"B", b"C", b"R", b"I", b"U", b"D"])
def test_messages_that_are_cut_off_are_an_error(kind: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="pgoutput"):
        decode(kind + b"\0")


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_a_message_or_an_error(data: bytes) -> None:
    for kind in (b"", b"I", b"U", b"R", b"D", b"T", b"B", b"C"):
        with contextlib.suppress(RemoteProtocolError):
            decode(kind + data)


@given(st.integers(0, (1 << 64) - 1))
def test_positions_are_written_and_read(lsn: int) -> None:
    assert lsn_of(lsn_text(lsn)) == lsn


def test_positions_are_written_as_postgresql_does() -> None:
    assert lsn_text(0x16_B374D848) == "16/B374D848"
