"""One event as one line of JSON, for people's tools."""

from __future__ import annotations

import base64
from typing import Literal

import msgspec

from penstock.model.event import Event

PayloadEncoding = Literal["json", "text", "base64"]
KeyEncoding = Literal["text", "base64"]


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says, in this order. ``timestamp`` is in milliseconds.

    ``payload`` is a JSON value as published where ``payload_encoding`` is ``json``,
    else a string: the text itself, or the base64 of bytes that are no text.
    """

    topic: str
    offset: int
    id: str
    timestamp: int
    priority: int
    key: str | None
    key_encoding: KeyEncoding | None
    headers: dict[str, str]
    parent: str | None
    producer: str | None
    payload: msgspec.Raw | str
    payload_encoding: PayloadEncoding


_encoder = msgspec.json.Encoder()
_as_json = msgspec.json.Decoder(msgspec.Raw)


def line_of(event: Event) -> bytes:
    """The event as JSON, newline included."""
    payload, payload_encoding = _payload(event.payload)
    key, key_encoding = _key(event.key)
    line = Line(
        topic=event.topic,
        offset=event.offset,
        id=event.id,
        timestamp=event.timestamp_ms,
        priority=event.priority,
        key=key,
        key_encoding=key_encoding,
        headers=dict(event.headers),
        parent=event.parent,
        producer=event.producer,
        payload=payload,
        payload_encoding=payload_encoding,
    )
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
