"""The messages of PostgreSQL's ``pgoutput``, version 1, as they stand in bytes.

    Begin     B  i64 commit position, i64 time, i32 transaction
    Commit    C  i8 flags, i64 commit position, i64 end position, i64 time
    Relation  R  i32 id, namespace, name, i8 identity, i16 count, columns
      column     i8 flags (1: of the identity), name, i32 type, i32 modifier
    Insert    I  i32 relation, N tuple
    Update    U  i32 relation, [K | O tuple], N tuple
    Delete    D  i32 relation, K | O tuple
    Truncate  T  i32 count, i8 flags, i32 relations
    tuple        i16 count, values: n (null), u (not sent), t i32 length bytes (text)

Names end in a zero byte; numbers are big-endian. Times are microseconds since 2000.
Other messages (Origin, Type, Message) are of no interest here and give None.
"""

from __future__ import annotations

from struct import Struct, error

import msgspec

from penstock.errors import RemoteProtocolError

# Microseconds from 1970 to 2000.
_EPOCH_US = 946_684_800_000_000
_BEGIN = Struct("!qqi")
_COMMIT = Struct("!bqqq")
_I32 = Struct("!i")
_I16 = Struct("!h")
_COLUMN_TAIL = Struct("!ii")
_ROW = Struct("!ic")
_length = _I32.unpack_from

# A value of a tuple: text, nothing, or not sent because it is large and as before.
PgValue = bytes | None
UNCHANGED = b"\0unchanged"
Tuple = tuple[PgValue, ...]
_TEXT = ord("t")
_WITHOUT_TEXT: dict[int, PgValue] = {ord("n"): None, ord("u"): UNCHANGED}
# The flag of a column.
_KEYED = 1


class Begin(msgspec.Struct, frozen=True):
    commit_lsn: int
    at_ms: int


class CommitMessage(msgspec.Struct, frozen=True):
    commit_lsn: int
    end_lsn: int


class RelationColumn(msgspec.Struct, frozen=True):
    """``keyed``: it is a part of what tells rows apart, the identity."""

    name: str
    type: int
    keyed: bool = False


class Relation(msgspec.Struct, frozen=True):
    """``identity``: d (primary key), i (an index), f (all columns), n (none)."""

    id: int
    namespace: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Insert(msgspec.Struct, frozen=True, gc=False):
    relation: int
    new: Tuple


class Update(msgspec.Struct, frozen=True, gc=False):
    """``old`` is whole if the table has the identity FULL, or only the key, or None."""

    relation: int
    old: Tuple | None
    whole: bool
    new: Tuple


class Delete(msgspec.Struct, frozen=True):
    relation: int
    old: Tuple
    whole: bool


class Truncate(msgspec.Struct, frozen=True):
    relations: tuple[int, ...]


PgMessage = Begin | CommitMessage | Relation | Insert | Update | Delete | Truncate


def decode(data: bytes) -> PgMessage | None:
    """One message; None if it is of a kind that does not matter.

    Raises RemoteProtocolError.
    """
    try:
        return _decode(data)
    except (error, IndexError, ValueError) as problem:
        reason = f"a message {data[:1]!r} of {len(data)} bytes: {problem}"
        raise RemoteProtocolError("pgoutput", reason) from problem


def _decode(data: bytes) -> PgMessage | None:
    kind = data[:1]
    if kind == b"I":
        relation, mark = _ROW.unpack_from(data, 1)
        new, _ = _tuple(data, 6 if mark == b"N" else _expect(data, 5, b"N"))
        return Insert(relation, new)
    if kind == b"U":
        return _update(data)
    if kind == b"B":
        commit_lsn, at_us, _ = _BEGIN.unpack_from(data, 1)
        return Begin(commit_lsn, (at_us + _EPOCH_US) // 1000)
    if kind == b"C":
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return CommitMessage(commit_lsn, end_lsn)
    if kind == b"D":
        whole = data[5:6] == b"O"
        old, _ = _tuple(data, 6 if whole else _expect(data, 5, b"K"))
        return Delete(_I32.unpack_from(data, 1)[0], old, whole)
    if kind == b"R":
        return _relation(data)
    if kind == b"T":
        (count,) = _I32.unpack_from(data, 1)
        return Truncate(
            tuple(_I32.unpack_from(data, 6 + 4 * one)[0] for one in range(count))
        )
    return None


def _update(data: bytes) -> Update:
    (relation, kind), at = _ROW.unpack_from(data, 1), 6
    old: Tuple | None = None
    if kind in (b"K", b"O"):
        old, at = _tuple(data, at)
        at = _expect(data, at, b"N")
    elif kind != b"N":
        raise ValueError(f"{kind!r} where N, K or O has to be")
    new, _ = _tuple(data, at)
    return Update(relation, old, kind == b"O", new)


def _relation(data: bytes) -> Relation:
    (number,) = _I32.unpack_from(data, 1)
    namespace, at = _name(data, 5)
    name, at = _name(data, at)
    identity = chr(data[at])
    (count,) = _I16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        keyed = bool(data[at] & _KEYED)
        column, at = _name(data, at + 1)
        kind, _modifier = _COLUMN_TAIL.unpack_from(data, at)
        at += _COLUMN_TAIL.size
        columns.append(RelationColumn(column, kind, keyed))
    return Relation(number, namespace, name, identity, tuple(columns))


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    """The values that stand there, and where they end."""
    (count,) = _I16.unpack_from(data, at)
    at += 2
    values: list[PgValue] = []
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            (length,) = _length(data, at + 1)
            at += 5
            if length < 0:
                raise ValueError(f"a value of {length} bytes is cut off")
            values.append(data[at : at + length])
            at += length
            continue
        if kind not in _WITHOUT_TEXT:
            raise ValueError(f"a value of kind {data[at : at + 1]!r}")
        values.append(_WITHOUT_TEXT[kind])
        at += 1
    if at > len(data):
        raise ValueError(f"a value of {length} bytes is cut off")
    return tuple(values), at


def _name(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _expect(data: bytes, at: int, mark: bytes) -> int:
    found = data[at : at + 1]
    if found != mark:
        raise ValueError(f"{found!r} where {mark!r} has to be")
    return at + 1


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes a position."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    """The position that such a text names; raises ValueError."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)
