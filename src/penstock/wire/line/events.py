"""The JSON object of a ``pub`` line, decoded in batches.

Rules of an event:

    id        a string or an integer, kept as text; absent: the broker gives one.
              1 to MAX_ID_BYTES bytes, printable, no space at either end, so that
              ``ack <topic> <id>`` can name it
    msg       any JSON value, kept as the bytes it came in; absent: null
    priority  an integer from 0 to 255; absent: 0
    times     those of TIMES in model/event.py, such as ``expires``: an integer,
              milliseconds since 1970, or text as of RFC 3339; absent: none
    topic     allowed if it says what the command says
    others    kept as they are, as the text of one JSON object

Nearly all events are plain. So a batch is decoded at once with the strictest decoder;
only if something in it is not plain, one by one; and an event that is not plain by
the exact path, which knows other fields and finds the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple, cast

import msgspec

from penstock.errors import RemoteProtocolError
from penstock.model.event import MAX_ID_BYTES, MAX_PRIORITY, TIMES
from penstock.model.moment import MAX_TIME_MS, TIME_LIMIT, time_ms
from penstock.wire.json_text import NOT_JSON, all_utf8, why_not_json

# How much of a wrong value an error repeats.
_SHOWN_CHARACTERS = 80

LineRow = tuple[str | None, int, bytes, str | None]
LineTimes = dict[str, int]


class Decoded(NamedTuple):
    """The good events of a batch in columns, and what is wrong with the others."""

    ids: list[str | None]
    priorities: list[int]
    msgs: list[bytes]
    fields: list[str | None] | None  # None: no event has other fields
    errors: list[tuple[int, RemoteProtocolError]]  # by index in the batch
    times: dict[str, list[int]] = {}  # by column; 0: the event has none


_Time = Annotated[int, msgspec.Meta(ge=1, le=MAX_TIME_MS)]


class _PlainEvent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: str | int | msgspec.UnsetType = msgspec.UNSET
    msg: msgspec.Raw = msgspec.Raw(b"null")
    priority: Annotated[int, msgspec.Meta(ge=0, le=MAX_PRIORITY)] = 0


# The same with times, by the names in FIELDS; 0 is what no client may say.
_TimedEvent = msgspec.defstruct(
    "_TimedEvent",
    [(one.name, _Time, 0) for one in TIMES],
    bases=(_PlainEvent,),
    forbid_unknown_fields=True,
    gc=False,
)
# mypy does not see that these are the fields of its base, and more.
_decode_timed = cast(
    "Callable[[bytes], _PlainEvent]", msgspec.json.Decoder(_TimedEvent).decode
)
_decode_plain = msgspec.json.Decoder(_PlainEvent).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_id = msgspec.json.Decoder(str | int).decode
_decode_priority = msgspec.json.Decoder(
    Annotated[int, msgspec.Meta(ge=0, le=MAX_PRIORITY)]
).decode
_decode_text = msgspec.json.Decoder(str).decode


def decode_event(topic: str, data: bytes) -> LineRow:
    """(id, priority, msg, fields) of one event; raises RemoteProtocolError."""
    decoded = decode_events(topic, [data])
    if decoded.errors:
        raise decoded.errors[0][1]
    fields = decoded.fields[0] if decoded.fields else None
    return decoded.ids[0], decoded.priorities[0], decoded.msgs[0], fields


def decode_events(topic: str, jsons: Sequence[bytes]) -> Decoded:
    """Decode events of one topic."""
    return decode_mixed([topic] * len(jsons), jsons)


def decode_mixed(topics: Sequence[str], jsons: Sequence[bytes]) -> Decoded:
    """Decode events, each for the topic at the same place."""
    times: dict[str, list[int]] = {}
    events: Sequence[_PlainEvent]
    try:
        events = list(map(_decode_plain, jsons))
    except NOT_JSON:
        try:
            events = list(map(_decode_timed, jsons))
        except NOT_JSON:
            return _decode_one_by_one(topics, jsons)
        columns = {one.column: [getattr(e, one.name) for e in events] for one in TIMES}
        times = {name: column for name, column in columns.items() if any(column)}
    ids = _plain_ids([event.id for event in events])
    msgs = [bytes(event.msg) for event in events]
    if ids is None or not all_utf8(msgs):
        return _decode_one_by_one(topics, jsons)
    return Decoded(ids, [event.priority for event in events], msgs, None, [], times)


def _plain_ids(ids: list[str | int | msgspec.UnsetType]) -> list[str | None] | None:
    """The ids as text, if a look at all of them together shows that they are good."""
    texts: list[str | None]
    if set(map(type, ids)) == {str}:
        given = cast("list[str]", ids)  # as just seen
        texts = [*given]
    else:
        texts = [None if id is msgspec.UNSET else str(id) for id in ids]
        given = [text for text in texts if text is not None]
    joined = "".join(given)
    if not joined.isascii() or not joined.isprintable() or " " in joined:
        return None
    if not all(given) or max(map(len, given), default=0) > MAX_ID_BYTES:
        return None
    return texts


def _decode_one_by_one(topics: Sequence[str], jsons: Sequence[bytes]) -> Decoded:
    decoded = Decoded([], [], [], [], [])
    fields: list[str | None] = []
    times: dict[str, list[int]] = {one.column: [] for one in TIMES}
    for index, data in enumerate(jsons):
        try:
            row, given = _decode_one(topics[index], data)
        except RemoteProtocolError as error:
            decoded.errors.append((index, error))
            continue
        decoded.ids.append(row[0])
        decoded.priorities.append(row[1])
        decoded.msgs.append(row[2])
        fields.append(row[3])
        for name, column in times.items():
            column.append(given.get(name, 0))
    return decoded._replace(
        fields=fields if any(fields) else None,
        times={name: column for name, column in times.items() if any(column)},
    )


def _decode_one(topic: str, data: bytes) -> tuple[LineRow, LineTimes]:
    try:
        event = _decode_plain(data)
        data.decode()
    except NOT_JSON:
        return _decode_exactly(topic, data.strip())
    if event.id is msgspec.UNSET:
        return (None, event.priority, bytes(event.msg), None), {}
    id = event.id if isinstance(event.id, str) else str(event.id)
    return (_checked_id(id), event.priority, bytes(event.msg), None), {}


def _decode_exactly(topic: str, data: bytes) -> tuple[LineRow, LineTimes]:
    members = _members(data)
    id = members.pop("id", None)
    priority = members.pop("priority", None)
    msg = members.pop("msg", None)
    if "topic" in members:
        _check_topic(topic, members.pop("topic"))
    times = {
        one.column: _time(one.name, members.pop(one.name))
        for one in TIMES
        if one.name in members
    }
    row = (
        None if id is None else _id(id),
        0 if priority is None else _priority(priority),
        b"null" if msg is None else bytes(msg),
        _object_text(members) if members else None,
    )
    return row, times


def _members(data: bytes) -> dict[str, msgspec.Raw]:
    try:
        data.decode()
        return _decode_members(data)
    except NOT_JSON:
        reason = why_not_json(data)
    raise _error(
        f"not valid JSON: {reason}" if reason else "event is not a JSON object"
    )


def _check_topic(topic: str, raw: msgspec.Raw) -> None:
    try:
        if _decode_text(raw) == topic:
            return
    except NOT_JSON:
        pass
    raise _error(
        f"topic is {_shown(raw)}: must be absent or {topic}, as in the command"
    )


def _priority(raw: msgspec.Raw) -> int:
    try:
        priority: int = _decode_priority(raw)
    except NOT_JSON:
        raise _error(
            f"priority is {_shown(raw)}: must be an integer from 0 to {MAX_PRIORITY}"
        ) from None
    return priority


def _time(name: str, raw: msgspec.Raw) -> int:
    try:
        found = time_ms(_decode_id(raw))
    except NOT_JSON:
        found = None
    if found is None:
        raise _error(f"{name} is {_shown(raw)}: must be {TIME_LIMIT}")
    return found


def _id(raw: msgspec.Raw) -> str:
    try:
        id = _decode_id(raw)
    except NOT_JSON:
        raise _error(f"id is {_shown(raw)}: must be a string or an integer") from None
    return _checked_id(id if isinstance(id, str) else str(id))


def _checked_id(id: str) -> str:
    if not id:
        raise _error(f"id is empty: must have 1 to {MAX_ID_BYTES} bytes")
    if len(id) > MAX_ID_BYTES or len(id.encode()) > MAX_ID_BYTES:
        length = len(id.encode())
        raise _error(f"id has {length} bytes: must have 1 to {MAX_ID_BYTES}")
    if not id.isprintable():
        raise _error(f"id is {id!a}: must be printable")
    if id[0] == " " or id[-1] == " ":
        raise _error(f"id is {id!a}: must not begin or end with a space")
    return id


def _object_text(members: dict[str, msgspec.Raw]) -> str:
    pairs = [msgspec.json.encode(name) + b":" + members[name] for name in members]
    text = b"{" + b",".join(pairs) + b"}"
    return (msgspec.json.format(text, indent=-1) if b"\r" in text else text).decode()


def _shown(raw: msgspec.Raw) -> str:
    text = bytes(raw).decode()
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "…"
    return text if text.isprintable() else ascii(text)[1:-1]


def _error(text: str) -> RemoteProtocolError:
    return RemoteProtocolError("line", text)
