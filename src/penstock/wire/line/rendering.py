"""Event lines: ``{"topic":…,"priority":…,"msg":…,"id":…}``, rendered in batches.

The order of the keys is part of the protocol. Other fields that the event was
published with follow behind ``id``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from penstock.model.event import MAX_PRIORITY
from penstock.wire.json_text import NOT_JSON, one_line, one_line_each

# Some 20 KiB each.
_CACHED_TOPICS = 256
_OWN_KEYS = ("topic", "priority", "msg", "id")

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def render_events(
    topic: str,
    priorities: Sequence[int],
    payloads: Sequence[bytes],
    ids: Sequence[str],
    fields: Sequence[str | None] | None = None,
) -> list[bytes]:
    """One line for each event, with its line end."""
    heads = map(_heads(topic).__getitem__, priorities)
    tails = _tails(ids) if fields is None else _tails_with_fields(ids, fields)
    return list(map(b"".join, zip(heads, one_line_each(payloads), tails, strict=True)))


@lru_cache(_CACHED_TOPICS)
def _heads(topic: str) -> tuple[bytes, ...]:
    """What stands in front of ``msg``, by priority."""
    name = msgspec.json.encode(topic)
    return tuple(
        b'{"topic":%b,"priority":%d,"msg":' % (name, priority)
        for priority in range(MAX_PRIORITY + 1)
    )


def _tails(ids: Sequence[str]) -> list[bytes]:
    text = "".join(ids)
    if not text.isprintable() or '"' in text or "\\" in text:
        return [b',"id":%b}\r\n' % msgspec.json.encode(id) for id in ids]
    # One encoding for all of them; the line ends are where to cut.
    tails = ',"id":"' + '"}\r\n,"id":"'.join(ids) + '"}\r\n'
    return tails.encode().splitlines(keepends=True)[: len(ids)]


def _tails_with_fields(ids: Sequence[str], fields: Sequence[str | None]) -> list[bytes]:
    return [
        b',"id":%b%b}\r\n' % (msgspec.json.encode(id), _members(text))
        for id, text in zip(ids, fields, strict=True)
    ]


def _members(fields: str | None) -> bytes:
    """The members of the object to append. No object, as others may store: none."""
    if fields is None:
        return b""
    try:
        members = _decode_members(fields)
    except NOT_JSON:
        return b""
    return b"".join(
        b",%b:%b" % (msgspec.json.encode(name), one_line(bytes(raw)))
        for name, raw in members.items()
        if name not in _OWN_KEYS
    )
