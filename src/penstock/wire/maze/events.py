"""Event lines of the maze source, parsed in batches, and the id line of a client.

    seq|F|from|to   from follows to          seq|P|from|to   private message
    seq|U|from|to   from follows no longer   seq|S|from      status update
    seq|B           broadcast

Numbers are decimal digits: ``seq`` from 1, users from 0, both to MAX_NUMBER. The line
itself is what clients get, so it is kept with the end it came with.

A batch is parsed by turning its text into JSON: ``666|F|60|50`` becomes
``[666,70,60,50]``, and a decoder that wants four integers checks the rest. Only
digits, bars and the five letters go that way, so no text can pretend to be two rows;
two letters in a line make more than four integers, so as many letters as lines mean
one in each, and no digits pass for a type. If anything is amiss, each line is parsed
on its own, and finds its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from penstock.errors import RemoteProtocolError
from penstock.wire.lines import TOO_LONG

FOLLOW: Final = ord("F")
UNFOLLOW: Final = ord("U")
BROADCAST: Final = ord("B")
PRIVATE: Final = ord("P")
STATUS: Final = ord("S")

# What a signed 64-bit column holds; the official clients stay far below.
MAX_NUMBER: Final = (1 << 63) - 1
_MAX_DIGITS = 19

# (seq, kind, from, to); users that the kind does not have are 0.
MazeRow = tuple[int, int, int, int]

_FIELDS = {FOLLOW: 4, UNFOLLOW: 4, PRIVATE: 4, STATUS: 3, BROADCAST: 2}
_LETTERS = b"FUBPS"
_OTHERS = b"0123456789|\n"

_Seq = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
_User = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
_decode_rows = msgspec.json.Decoder(list[tuple[_Seq, int, _User, _User]]).decode


class Bad(NamedTuple):
    """A line that is no event. ``seq`` is known if only what follows it is wrong."""

    raw: bytes
    seq: int | None
    reason: str


class Parsed(NamedTuple):
    """The events of a batch, the bytes of each to forward, and the other lines."""

    rows: list[MazeRow]
    raws: list[bytes]
    bad: list[Bad]


def parse(lines: Sequence[bytes]) -> Parsed:
    """Parse lines as a LineSplitter gives them; never raises."""
    text = (b"\n".join(lines) + b"\n").replace(b"\r\n", b"\n")
    letters = text.translate(None, _OTHERS)
    if len(letters) != len(lines) or letters.translate(None, _LETTERS):
        return _parse_one_by_one(lines)
    text = (
        text.replace(b"|S|", b",83,0,")
        .replace(b"|F|", b",70,")
        .replace(b"|U|", b",85,")
        .replace(b"|P|", b",80,")
        .replace(b"|B\n", b",66,0,0\n")
        .replace(b"|", b",")
        .replace(b"\n", b"],[")
    )
    try:
        rows = _decode_rows(b"[[%b]" % text[:-2])
    except ValueError:
        return _parse_one_by_one(lines)
    rows = [row if row[1] != 83 else (row[0], 83, row[3], 0) for row in rows]
    return Parsed(rows, [line + b"\n" for line in lines], [])


def parse_client_id(line: bytes) -> int:
    """The id that a client sends first; raises RemoteProtocolError."""
    id = _number(line.strip())
    if id is None:
        shown = ascii(line[:40].decode(errors="replace"))
        raise RemoteProtocolError(
            "maze", f"client id is {shown}: must be a number from 0 to {MAX_NUMBER}"
        )
    return id


def _parse_one_by_one(lines: Sequence[bytes]) -> Parsed:
    parsed = Parsed([], [], [])
    for line in lines:
        event = _parse_one(line)
        if isinstance(event, Bad):
            parsed.bad.append(event)
        else:
            parsed.rows.append(event)
            parsed.raws.append(line + b"\n")
    return parsed


def _parse_one(line: bytes) -> MazeRow | Bad:
    if line == TOO_LONG:
        return Bad(b"", None, "line is too long")
    raw = line + b"\n"
    parts = line.removesuffix(b"\r").split(b"|")
    seq = _number(parts[0])
    if not seq:
        return Bad(raw, None, f"sequence number is not from 1 to {MAX_NUMBER}")
    if len(parts) == 1:
        return Bad(raw, seq, "type is missing")
    kind = parts[1][0] if len(parts[1]) == 1 else 0
    if kind not in _FIELDS:
        return Bad(raw, seq, "type is not one of F, U, B, P, S")
    if len(parts) != _FIELDS[kind]:
        return Bad(raw, seq, f"{len(parts)} fields: type {kind:c} has {_FIELDS[kind]}")
    users = [_number(part) for part in parts[2:]]
    if None in users:
        return Bad(raw, seq, f"user is not a number from 0 to {MAX_NUMBER}")
    sender, receiver = [user or 0 for user in [*users, 0, 0][:2]]
    return seq, kind, sender, receiver


def _number(digits: bytes) -> int | None:
    if not digits.isdigit() or len(digits) > _MAX_DIGITS:
        return None
    number = int(digits)
    return number if number <= MAX_NUMBER else None
