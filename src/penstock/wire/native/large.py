"""Large messages of a client, looked at before they are taken apart.

Columns are as they came at first, each one piece. So it is known what a message would
have of values before there is one, and what has too many costs no more than its bytes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Raw

from penstock.errors import RemoteProtocolError
from penstock.wire.native.messages import PUBLISH_COLUMNS, LargeAsk, LargePublish, Plain

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
    values = sum(map(_values, publishes))
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
