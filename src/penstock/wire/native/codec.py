"""Messages <-> bytes. Junk of the peer is a RemoteProtocolError, and nothing else.

A value of MessagePack may have one byte, and takes many times that in memory. What a
client sends that is large is looked at as a whole before it is taken apart. Columns
are as they came at first, each one piece: so it is known what a message would have of
values before there is one, and what has too many costs no more than its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from contextlib import suppress
from itertools import repeat
from operator import attrgetter
from struct import Struct
from typing import Annotated, NamedTuple, cast

import msgspec
from msgspec import Meta, Raw

from penstock.errors import LocalProtocolError, RemoteProtocolError
from penstock.wire.native.frames import HEADER_BYTES, frame
from penstock.wire.native.messages import (
    EVENTS_COLUMNS,
    PUBLISH_COLUMNS,
    Ask,
    ClientMessage,
    Events,
    Finish,
    LargeAsk,
    LargePublish,
    Plain,
    PlainPublish,
    Publish,
    Published,
    Received,
    ServerMessage,
    Stage,
)

# Of all columns of a message together; each name of a header is one, too.
MAX_VALUES = 1 << 20
# Topics that are published to in one step.
MAX_PUBLISHES = 10_000

_NIL = Raw(b"\xc0")
# A header has at least a byte for its name and one for its value.
_HEADER_BYTES = 2
_LENGTH = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


class _Finish(msgspec.Struct, array_like=True, tag=8):
    seq: Raw
    channel: Raw
    offsets: Raw
    publishes: Annotated[list[LargePublish], Meta(max_length=MAX_PUBLISHES)]


class _Stage(msgspec.Struct, array_like=True, tag=9):
    seq: Raw
    query: Raw
    epoch: Raw
    partition: Raw
    attempt: Raw
    publish: LargePublish


_decode = msgspec.msgpack.Decoder(
    Plain | LargePublish | LargeAsk | _Finish | _Stage
).decode
_each = msgspec.msgpack.Decoder(list[Raw]).decode


def check_large(body: bytes | memoryview) -> None:
    """Raise RemoteProtocolError if a message has too many values, or ValueError."""
    message = _decode(body)
    publishes: list[LargePublish] = []
    if isinstance(message, LargePublish):
        publishes = [message]
    elif isinstance(message, _Finish):
        publishes = message.publishes
    elif isinstance(message, _Stage):
        publishes = [message.publish]
    values = sum(map(_values, publishes)) + sum(_count(one.units) for one in publishes)
    headers = [one.headers for one in publishes if one.headers != _NIL]
    size = sum(len(memoryview(column)) for column in headers)
    # Names of headers are only counted if there may be too many of them.
    if values <= MAX_VALUES < values + size // _HEADER_BYTES:
        values += sum(_count(each) for column in headers for each in _each(column))
    if values > MAX_VALUES:
        what = f"{values} values of events in one message exceed {MAX_VALUES}"
        raise RemoteProtocolError("native", what)


def _values(publish: LargePublish) -> int:
    """Those of all columns, which have to have one for each payload."""
    count = values = _count(publish.payloads)
    for name in PUBLISH_COLUMNS:
        column: Raw = getattr(publish, name)
        if column == _NIL:
            continue
        if (length := _count(column)) != count:
            what = f"Publish: {length} {name} for {count} payloads"
            raise RemoteProtocolError("native", what)
        values += count
    return values


def _count(value: Raw) -> int:
    """The length of a list or map; 0 of what is none, which has no length."""
    data = memoryview(value)
    first = data[0]
    if 0x80 <= first < 0xA0:
        return first & 0x0F
    size = _LENGTH.get(first, 0)
    return int.from_bytes(data[1 : 1 + size], "big")


# What is not longer is taken apart at once.
LARGE_BYTES = 1 << 16

# In front of a Published: an array of its number and fields. Of a list of one id.
_PUBLISHED = bytes([0x90 + 1 + len(Published.__struct_fields__), 65])
_ONE_ID = b"\x91\xd9\x24"
_NIL_BYTE = b"\xc0"

_encode = msgspec.msgpack.Encoder().encode
_decode_plain = msgspec.msgpack.Decoder(PlainPublish).decode
_columns_of = attrgetter("seq", "topic", "payloads", "ids")
_decode_client = msgspec.msgpack.Decoder(
    Plain | Publish | LargeAsk | Finish | Stage
).decode
_decode_arguments = msgspec.msgpack.Decoder(dict[str, object]).decode
_decode_server = msgspec.msgpack.Decoder(ServerMessage).decode

_CHECKED = ("tries", *EVENTS_COLUMNS)
# All that a Publish may have besides payloads and ids.
_others = attrgetter(*(name for name in PUBLISH_COLUMNS if name != "ids"), "units")
_NO_OTHERS = (None,) * len(PUBLISH_COLUMNS)


def encode(message: ClientMessage | ServerMessage) -> bytes:
    """The frame of a message; raises LocalProtocolError if it cannot be one."""
    try:
        body = _encode(message)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        name = type(message).__name__
        raise LocalProtocolError("native", f"{name}: {error}") from None
    return frame(body)


def decode_client(body: bytes | memoryview) -> Received:
    """The message of a client; raises RemoteProtocolError."""
    try:
        if len(body) > LARGE_BYTES:
            check_large(body)
        message: Received = _decode_client(body)
        if type(message) is LargeAsk:
            return _ask(message)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(
            "native", f"not a client's message: {error}"
        ) from None
    if type(message) is Publish:
        _check_publish(message)
    elif type(message) is Finish:
        for one in message.publishes:
            _check_publish(one)
    elif type(message) is Stage:
        _check_publish(message.publish)
    return message


class PublishRun(NamedTuple):
    """Plain publishes one behind the other, in columns: entry ``i`` is of message i."""

    seqs: Sequence[int]
    topics: Sequence[str]
    payloads: Sequence[list[bytes]]
    ids: Sequence[list[str | None] | None]


def decode_run(bodies: Sequence[bytes | memoryview]) -> tuple[PublishRun | None, int]:
    """Plain publishes that these begin with, and how many they are.

    Whatever is no such thing is left to ``decode_client``.
    """
    run: list[PlainPublish] = []
    with suppress(ValueError, RecursionError):
        # What was decoded before one that is no plain publish stays in the list.
        run.extend(map(_decode_plain, _small(bodies)))
    if not run:
        return None, 0
    seqs, topics, payloads, ids = zip(*map(_columns_of, run), strict=True)
    columns = PublishRun(seqs, topics, payloads, ids)
    if ids.count(None) == len(ids) or _fit(ids, payloads):
        return columns, len(run)
    fits = [one is None or len(one) == len(payloads[at]) for at, one in enumerate(ids)]
    if (end := [*fits, False].index(False)) == 0:
        return None, 0
    return PublishRun(seqs[:end], topics[:end], payloads[:end], ids[:end]), end


def _fit(
    ids: Sequence[list[str | None] | None], payloads: Sequence[list[bytes]]
) -> bool:
    """Whether each has as many ids as payloads; a look at all of them together."""
    try:
        counts = list(map(len, cast("Sequence[list[str | None]]", ids)))
    except TypeError:  # some have none
        return False
    return counts == list(map(len, payloads))


def _small(bodies: Sequence[bytes | memoryview]) -> Sequence[bytes | memoryview]:
    """Those in front of the first that has to be looked at before it is decoded."""
    if max(map(len, bodies)) <= LARGE_BYTES:
        return bodies
    return bodies[: next(at for at, one in enumerate(bodies) if len(one) > LARGE_BYTES)]


def encode_published(
    seqs: Sequence[int], offsets: Sequence[int], ids: Sequence[str | None]
) -> bytes:
    """A Published for each seq with the first offset, and the id that is told, if any.

    Numbers may take more bytes than they need, so that all take the same. Ids are
    generated ones, which have 36 characters.
    """
    told = len(ids) - ids.count(None)
    if min(seqs) < 0 or 0 < told < len(ids):
        rows = zip(seqs, offsets, ids, strict=True)
        return b"".join(
            encode(Published(seq, offset, None if id_ is None else [id_]))
            for seq, offset, id_ in rows
        )
    (seq_tag, seq_code), (tag, code) = _width(max(seqs)), _width(max(offsets))
    layout = Struct(f">4s2sB{seq_code}B{code}" + ("3s36s" if told else "s") + "s")
    head = frame(bytes(layout.size - HEADER_BYTES))[:HEADER_BYTES]
    columns: list[Iterable[object]] = [repeat(head), repeat(_PUBLISHED)]
    columns += [repeat(seq_tag), seqs, repeat(tag), offsets]
    if told:
        columns += [repeat(_ONE_ID), map(str.encode, cast("Sequence[str]", ids))]
    else:
        columns.append(repeat(_NIL_BYTE))
    columns.append(repeat(_NIL_BYTE))  # no unit was refused
    return b"".join(map(layout.pack, *columns))


def _width(largest: int) -> tuple[int, str]:
    """The tag of a number of MessagePack that may be so large, and its struct code."""
    return (0xCE, "I") if largest < 1 << 32 else (0xCF, "Q")


def _ask(message: LargeAsk) -> Ask | LargeAsk:
    if len(memoryview(message.arguments)) > LARGE_BYTES:
        return message
    return Ask(message.seq, message.verb, _decode_arguments(message.arguments))


def decode_server(body: bytes | memoryview) -> ServerMessage:
    """The message of a server; raises RemoteProtocolError."""
    try:
        message: ServerMessage = _decode_server(body)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(
            "native", f"not a server's message: {error}"
        ) from None
    if isinstance(message, Events):
        _check_columns(message, _CHECKED)
    return message


def is_plain(message: Publish) -> bool:
    """Whether it has payloads, and perhaps ids, and nothing else, as most have."""
    return _others(message) == _NO_OTHERS


def _check_publish(message: Publish) -> None:
    """As below, for the message of which there are most."""
    if is_plain(message) and (
        message.ids is None or len(message.ids) == len(message.payloads)
    ):
        return
    _check_columns(message, PUBLISH_COLUMNS)
    if message.units is not None:
        _check_units(message.units, len(message.payloads))


def _check_units(units: list[int], count: int) -> None:
    if min(units, default=0) < 1 or sum(units) != count:
        raise RemoteProtocolError(
            "native", f"Publish: units of {sum(units)} events for {count} payloads"
        )


def _check_columns(message: Publish | Events, names: tuple[str, ...]) -> None:
    count = len(message.payloads)
    for name in names:
        column: Sized | None = getattr(message, name)
        if column is not None and len(column) != count:
            raise RemoteProtocolError(
                "native",
                f"{type(message).__name__}: {len(column)} {name} for {count} payloads",
            )
