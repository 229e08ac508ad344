"""Events as publishers write them in JSON, and as columns for the log.

An event is an object with ``payload`` (any JSON value, kept as it is written), or
``text``, or ``base64``; and with what else is known of it.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import Meta, Raw

from penstock.broker.names import check_ids
from penstock.errors import BadRequest, InvalidArgument, InvalidBatch
from penstock.log import Columns
from penstock.model.event import MAX_PRIORITY, SETTABLE, Field
from penstock.model.moment import time_ms
from penstock.wire.json_text import all_utf8, why_not_json

T = TypeVar("T")

# No JSON value is empty.
_ABSENT = Raw(b"")
_WHAT = "event"
_LIMIT = "exactly one of payload, text and base64"


def _absent() -> Raw:
    """A default that no schema has to show."""
    return _ABSENT


class Incoming(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One event to be published.

    ``payload`` is any JSON value; in its place may be ``text``, or ``base64`` for any
    bytes. Times are milliseconds since 1970, or text as RFC 3339 has it.
    ``key_encoding``: the key is base64 text. A publisher that gives a ``dedup_id``
    may publish again: the event is stored once.
    """

    payload: Raw = msgspec.field(default_factory=_absent)
    text: str | None = None
    base64: str | None = None
    key: str | None = None
    key_encoding: Literal["base64"] | None = None
    headers: dict[str, str] | None = None
    priority: Annotated[int, Meta(ge=0, le=MAX_PRIORITY)] = 0
    id: str | None = None
    parent: str | None = None
    dedup_id: str | None = None
    expires: int | str | None = None
    not_before: int | str | None = None


class _PlainJson(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """What nearly all events are: decoded in half the time."""

    payload: Raw


# Of one request; more can be sent as lines.
MAX_ARRAY = 100_000


class _Counted(Incoming):
    """One of an array that may be too long, which is known as soon as it is.

    A decoder looks at the length of an array when all of it is there, and an event may
    have two bytes. No other body is decoded meanwhile.
    """

    left: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _Counted.left -= 1
        if _Counted.left < 0:
            raise ValueError(f"Expected `array` of length <= {MAX_ARRAY}")


class Arrived(msgspec.Struct, gc=False):
    """Events in columns, with the dedup ids if there are any."""

    columns: Columns
    dedup_ids: list[str | None] | None = None


_decode_one = msgspec.json.Decoder(Incoming).decode
_decode_array = msgspec.json.Decoder(
    Annotated[list[Incoming], msgspec.Meta(max_length=MAX_ARRAY)]
).decode
_decode_counted = msgspec.json.Decoder(list[_Counted]).decode
_decode_plain_lines = msgspec.json.Decoder(_PlainJson).decode_lines
_decode_lines = msgspec.json.Decoder(Incoming).decode_lines


def read_one(data: bytes) -> Incoming:
    """One event; raises BadRequest, InvalidArgument."""
    return _read(_decode_one, data)


def read_array(data: bytes) -> list[Incoming]:
    """An array of events; raises BadRequest, InvalidArgument."""
    if data.count(b"{") <= MAX_ARRAY:
        return _read(_decode_array, data)
    _Counted.left = MAX_ARRAY
    return [*_read(_decode_counted, data)]


def arrived_lines(block: bytes, now_ms: int, producer: str | None) -> Arrived | None:
    """Lines of events, if all of them are good; None: they need a closer look."""
    if not (block.isascii() or all_utf8([block])):
        return None
    try:
        plain = _decode_plain_lines(block)
    except (msgspec.MsgspecError, RecursionError):
        pass
    else:
        payloads = [bytes(one.payload) for one in plain]
        return Arrived(Columns(payloads, now_ms, producer=producer))
    try:
        return arrived(_decode_lines(block), now_ms, producer)
    except (msgspec.MsgspecError, RecursionError, InvalidBatch):
        return None


def arrived(rows: Sequence[Incoming], now_ms: int, producer: str | None) -> Arrived:
    """Events as columns; raises InvalidBatch."""
    dedup_ids = _given([row.dedup_id for row in rows])
    if dedup_ids is not None:
        check_ids("dedup id", dedup_ids)
    columns = Columns(_payloads(rows), now_ms, producer=producer)
    for field in SETTABLE:
        setattr(columns, field.column, _column(field, rows))
    return Arrived(columns, dedup_ids)


def _column(field: Field, rows: Sequence[Incoming]) -> list[Any] | None:
    """What rows say of a field; None if none says anything. Raises InvalidBatch."""
    # Any: the values of whichever field.
    if field.name == "key":
        return _keys(rows)
    values = [getattr(row, field.name) for row in rows]
    if all(value is None or value == field.blank for value in values):
        return None
    if field.kind == "time":
        return [0 if value is None else _time(field, value) for value in values]
    if field.kind == "text":
        check_ids(field.name, values)
    if field.kind == "map":
        return [value or {} for value in values]
    return values


def _time(field: Field, value: int | str) -> int:
    found = time_ms(value)
    if found is None:
        raise InvalidBatch(field.name, repr(value)[:80], field.limit)
    return found


def _read(decode: Callable[[bytes], T], data: bytes) -> T:
    try:
        data.decode()
        return decode(data)
    except msgspec.ValidationError as error:
        raise InvalidArgument(_WHAT, _in_our_words(str(error))) from None
    except (ValueError, RecursionError):
        reason = why_not_json(data) or "it makes no sense"
        raise BadRequest(f"the body is not valid JSON: {reason}") from None


def _in_our_words(text: str) -> str:
    return text.replace("Object contains unknown field", "there is no field")


def _given(values: list[T | None]) -> list[T | None] | None:
    return None if values.count(None) == len(values) else values


def _payloads(rows: Sequence[Incoming]) -> list[bytes]:
    payloads = [bytes(row.payload) for row in rows]
    texts = _given([row.text for row in rows])
    binary = _given([row.base64 for row in rows])
    if b"" not in payloads and texts is None and binary is None:
        return payloads  # JSON all of them, as nearly always
    pairs = zip(rows, payloads, strict=True)
    return [_payload(row, payload) for row, payload in pairs]


def _payload(row: Incoming, payload: bytes) -> bytes:
    given = bool(payload) + (row.text is not None) + (row.base64 is not None)
    if given != 1:
        raise InvalidBatch("payload", f"given in {given} ways", _LIMIT)
    if payload:
        return payload
    if row.text is not None:
        try:
            return row.text.encode()
        except UnicodeEncodeError:
            raise InvalidBatch("text", "with half a character", "Unicode") from None
    return _bytes("base64", row.base64 or "")


def _keys(rows: Sequence[Incoming]) -> list[bytes | None] | None:
    if _given([row.key for row in rows]) is None:
        return None
    return [_key(row) for row in rows]


def _key(row: Incoming) -> bytes | None:
    if row.key is None:
        return None
    if row.key_encoding is not None:
        return _bytes("key", row.key)
    try:
        return row.key.encode()
    except UnicodeEncodeError:
        raise InvalidBatch("key", "with half a character", "Unicode") from None


def _bytes(field: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise InvalidBatch(field, repr(text[:80]), "base64") from None
