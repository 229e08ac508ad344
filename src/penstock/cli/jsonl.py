"""One event as one line of JSON, for people's tools."""

from __future__ import annotations

import base64
from typing import Literal

import msgspec

from penstock.model.event import FIELDS, Event, values_of

PayloadEncoding = Literal["json", "text", "base64"]
KeyEncoding = Literal["text", "base64"]


# First in a line; the others follow in the order of their list, the payload last.
_FIRST = ("topic", "offset", "id", "timestamp")
_LAST = ("payload",)
_NAMES = (
    *_FIRST,
    *(one.name for one in FIELDS if one.name not in _FIRST + _LAST),
    *_LAST,
)

_encoder = msgspec.json.Encoder()
_as_json = msgspec.json.Decoder(msgspec.Raw)


def line_of(event: Event) -> bytes:
    """The event as JSON, newline included.

    It has all fields of an event, times in milliseconds. ``payload`` is a JSON value
    as published where ``payload_encoding`` is ``json``, else a string: the text
    itself, or the base64 of bytes that are no text. So is ``key``.
    """
    values = values_of(event)
    line: dict[str, object] = {}
    for name in _NAMES:
        line[name] = values[name]
        if name == "key":
            line["key"], line["key_encoding"] = _key(event.key)
    line["payload"], line["payload_encoding"] = _payload(event.payload)
    return _encoder.encode(line) + b"\n"


def _payload(data: bytes) -> tuple[msgspec.Raw | str, PayloadEncoding]:
    text = _text(data)
    if text is None:
        return _base64(data), "base64"
    try:
        value = _as_json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return text, "text"
    if b"\n" in data or b"\r" in data:
        value = msgspec.Raw(msgspec.json.format(data, indent=-1))
    return value, "json"


def _key(data: bytes | None) -> tuple[str | None, KeyEncoding | None]:
    if data is None:
        return None, None
    text = _text(data)
    return (_base64(data), "base64") if text is None else (text, "text")


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
