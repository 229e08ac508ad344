"""Messages <-> bytes. Junk of the peer is a RemoteProtocolError, and nothing else.

A value of MessagePack may have one byte, and takes many times that in memory. What a
client sends that is large is looked at as a whole before it is taken apart (large.py).
"""

from __future__ import annotations

from collections.abc import Sized
from operator import attrgetter

import msgspec

from penstock.errors import LocalProtocolError, RemoteProtocolError
from penstock.wire.native.frames import frame
from penstock.wire.native.large import check_large
from penstock.wire.native.messages import (
    EVENTS_COLUMNS,
    PUBLISH_COLUMNS,
    Ask,
    ClientMessage,
    Events,
    Finish,
    LargeAsk,
    Plain,
    Publish,
    Received,
    ServerMessage,
    Stage,
)

# What is not longer is taken apart at once.
LARGE_BYTES = 1 << 16

_encode = msgspec.msgpack.Encoder().encode
_decode_client = msgspec.msgpack.Decoder(
    Plain | Publish | LargeAsk | Finish | Stage
).decode
_decode_arguments = msgspec.msgpack.Decoder(dict[str, object]).decode
_decode_server = msgspec.msgpack.Decoder(ServerMessage).decode

_CHECKED = ("tries", *EVENTS_COLUMNS)
# All columns of a Publish but the ids.
_others = attrgetter(*(name for name in PUBLISH_COLUMNS if name != "ids"))
_NO_OTHERS = (None,) * (len(PUBLISH_COLUMNS) - 1)


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


def _check_columns(message: Publish | Events, names: tuple[str, ...]) -> None:
    count = len(message.payloads)
    for name in names:
        column: Sized | None = getattr(message, name)
        if column is not None and len(column) != count:
            raise RemoteProtocolError(
                "native",
                f"{type(message).__name__}: {len(column)} {name} for {count} payloads",
            )
