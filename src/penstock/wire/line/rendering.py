"""Event lines: ``{"topic":…,"priority":…,"msg":…,"id":…}``, rendered in batches.

The order of the keys is part of the protocol. Other fields that the event was
published with follow behind ``id``. So do those of a payload whose message is one of
its fields: that one is ``msg`` then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import add

import msgspec

from penstock.model.event import MAX_PRIORITY, TIMES
from penstock.wire.json_text import NOT_JSON, one_line, one_line_each

# Some 20 KiB each.
_CACHED_TOPICS = 256
_OWN_KEYS = ("topic", "priority", "msg", "id", *(one.name for one in TIMES))

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def render_events(
    topic: str,
    priorities: Sequence[int],
    payloads: Sequence[bytes],
    ids: Sequence[str],
    fields: Sequence[str | None] | None = None,
    messages: Sequence[str | None] | None = None,
    times: Mapping[str, Sequence[int]] | None = None,
) -> list[bytes]:
    """One line for each event, with its line end.

    ``messages``: which field of a payload is its message, where one is. ``times``: by
    the names of their fields; 0 is none.
    """
    if times:
        lines = render_events(topic, priorities, payloads, ids, fields, messages)
        return list(map(_timed, lines, _time_members(times)))
    heads = map(_heads(topic).__getitem__, priorities)
    if messages is not None:
        apart = list(map(_taken_apart, payloads, messages))
        payloads = [message for message, _ in apart]
        others = [other for _, other in apart]
        given = fields or [None] * len(ids)
        tails = _tails_with_fields(ids, map(add, others, map(_members, given)))
    elif fields is not None:
        tails = _tails_with_fields(ids, map(_members, fields))
    else:
        tails = _tails(ids)
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


def _tails_with_fields(ids: Sequence[str], members: Iterable[bytes]) -> list[bytes]:
    return [
        b',"id":%b%b}\r\n' % (msgspec.json.encode(id), text)
        for id, text in zip(ids, members, strict=True)
    ]


def _time_members(times: Mapping[str, Sequence[int]]) -> Iterable[bytes]:
    names = [name.encode() for name in times]
    for row in zip(*times.values(), strict=True):
        pairs = zip(names, row, strict=True)
        yield b"".join(b',"%b":%d' % (name, time) for name, time in pairs if time)


def _timed(line: bytes, members: bytes) -> bytes:
    return line[:-3] + members + line[-3:]  # in front of the brace and the line end


def _taken_apart(payload: bytes, message: str | None) -> tuple[bytes, bytes]:
    """The message of a payload, and its other members; all of it if it has none."""
    if message is None:
        return payload, b""
    line = one_line(payload)
    try:
        members = _decode_members(line)
    except NOT_JSON:
        return line, b""
    found = members.pop(message, None)
    return (line, b"") if found is None else (bytes(found), _appended(members))


def _members(fields: str | None) -> bytes:
    """The members of the object to append. No object, as others may store: none."""
    if fields is None:
        return b""
    try:
        members = _decode_members(fields)
    except NOT_JSON:
        return b""
    return _appended({name: one_line(bytes(raw)) for name, raw in members.items()})


def _appended(members: Mapping[str, bytes]) -> bytes:
    return b"".join(
        b",%b:%b" % (msgspec.json.encode(name), raw)
        for name, raw in members.items()
        if name not in _OWN_KEYS
    )
