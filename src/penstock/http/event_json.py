"""Events as JSON, the same everywhere in HTTP: pages, streams, pulls and sockets.

A payload that is JSON is embedded as it was published: numbers keep their spelling, and
nothing is decoded to be encoded again. Any other payload becomes text, or base64 if it
is not UTF-8. No event has a line end in it, so that one is one line.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.desk.views.events import EventView
from penstock.log import Batch
from penstock.model.event import BY_NAME, TIMES, Field
from penstock.wire.json_text import NOT_JSON, all_utf8

# Of a payload, in a list that was not asked for whole ones.
CUT_BYTES = 64 << 10

_FORMAT = "http"
_check = msgspec.json.Decoder(Raw).decode


class EventJson(msgspec.Struct, gc=False):
    """One event, in the order of its fields.

    ``payload`` is the JSON value, text, or base64 text, as ``encoding`` says; a key
    that is not UTF-8 is base64 text and has ``key_encoding``. ``bytes`` is the size of
    the payload as it is stored; ``cut``: this is only its beginning. Times are there
    if the event has them.
    """

    topic: str
    offset: int
    id: str
    timestamp: int
    priority: int
    key: str | None
    key_encoding: str | UnsetType
    headers: dict[str, str]
    parent: str | None
    producer: str | None
    encoding: str
    payload: Raw | str
    bytes: int
    cut: bool | UnsetType = UNSET
    expires: int | UnsetType = UNSET
    not_before: int | UnsetType = UNSET


_encode = msgspec.json.Encoder().encode


def events_json(batch: Batch, cut_bytes: int | None = None) -> list[bytes]:
    """The events in view, each as JSON without line ends.

    ``cut_bytes``: of longer payloads only so much is shown.
    """
    payloads = batch.payloads()
    shown: Sequence[Raw] | None = None
    if cut_bytes is None or max(map(len, payloads), default=0) <= cut_bytes:
        shown = _all_json(payloads)
    if shown is not None:
        encodings: Sequence[str] = ["json"] * len(payloads)
        cuts: Sequence[bool | UnsetType] = [UNSET] * len(payloads)
        return _encoded(batch, encodings, shown, payloads, cuts)
    each = [payload_json(payload, cut_bytes) for payload in payloads]
    encodings, values, cuts = zip(*each, strict=True)
    return _encoded(batch, encodings, values, payloads, cuts)


def portion_json(portion: Portion) -> list[bytes]:
    """The events of a portion; those of a whole page are made once for all clients."""
    page, lo, hi = portion.page, portion.lo, portion.hi
    known = page.rendered.get(_FORMAT)
    if known is None:
        if 2 * (hi - lo) < len(page):
            return events_json(_view(page, lo, hi))
        known = page.rendered[_FORMAT] = events_json(_view(page, 0, len(page)))
    return known if hi - lo == len(page) else known[lo:hi]


def with_tries(events: list[bytes], tries: int) -> list[bytes]:
    """The same events, each with the try that this delivery is."""
    end = b',"tries":%d}' % tries
    return [event[:-1] + end for event in events]


def payload_json(
    payload: bytes, cut_bytes: int | None = None
) -> tuple[str, Raw | str, bool | UnsetType]:
    """Encoding and value of a payload, and whether it is only a part of it."""
    if cut_bytes is not None and len(payload) > cut_bytes:
        encoding, text = _text(payload[:cut_bytes], whole=False)
        return encoding, text, True
    value = json_value(payload)
    if value is not None:
        return "json", value, UNSET
    encoding, text = _text(payload, whole=True)
    return encoding, text, UNSET


def json_value(payload: bytes) -> Raw | None:
    """A payload that is JSON, on one line; None if it is none."""
    try:
        _check(payload)
        payload.decode()
    except NOT_JSON:
        return None
    return Raw(_on_one_line(payload))


def key_json(key: bytes | None) -> tuple[str | None, str | UnsetType]:
    """A key as text, and how it is encoded if that is not its text."""
    if key is None:
        return None, UNSET
    try:
        return key.decode(), UNSET
    except UnicodeDecodeError:
        return b64encode(key).decode(), "base64"


def _all_json(payloads: Sequence[bytes]) -> list[Raw] | None:
    """All payloads as they are, if all are JSON without line ends."""
    try:
        for _ in map(_check, payloads):
            pass
    except NOT_JSON:
        return None
    if not all_utf8(payloads):
        return None
    text = b"".join(payloads)
    if b"\n" in text or b"\r" in text:
        return list(map(Raw, map(_on_one_line, payloads)))
    return list(map(Raw, payloads))


def _on_one_line(payload: bytes) -> bytes:
    """JSON without line ends: in strings there are none, elsewhere they are spaces."""
    return payload.replace(b"\n", b" ").replace(b"\r", b" ").strip()


def _text(data: bytes, *, whole: bool) -> tuple[str, str]:
    try:
        return "text", data.decode()
    except UnicodeDecodeError as error:
        # A character that the cut goes through is left out, and no reason to despair.
        if not whole and error.reason == "unexpected end of data":
            return "text", data[: error.start].decode()
    return "base64", b64encode(data).decode()


def _encoded(
    batch: Batch,
    encodings: Sequence[str],
    values: Sequence[Raw | str],
    payloads: Sequence[bytes],
    cuts: Sequence[bool | UnsetType],
) -> list[bytes]:
    # Any: the values of whichever field.
    columns: dict[str, Sequence[Any]] = {
        "topic": [batch.topic] * len(batch),
        "encoding": encodings,
        "payload": values,
        "bytes": list(map(len, payloads)),
        "cut": cuts,
    }
    columns["key"], columns["key_encoding"] = _keys(batch)
    for name in EventJson.__struct_fields__:
        if name not in columns:
            columns[name] = _column(batch, BY_NAME[name])
    rows = zip(*map(columns.__getitem__, EventJson.__struct_fields__), strict=True)
    return [_encode(EventJson(*row)) for row in rows]


def _keys(batch: Batch) -> tuple[Sequence[str | None], Sequence[str | UnsetType]]:
    keys = batch.given("keys")
    if keys is None:
        return [None] * len(batch), [UNSET] * len(batch)
    texts, encodings = zip(*map(key_json, keys), strict=True)
    return texts, encodings


def _column(batch: Batch, field: Field) -> Sequence[Any]:
    if field.name == "headers":  # for reading only: one for all will do
        return batch.given("headers") or [{}] * len(batch)
    values: Sequence[Any] = getattr(batch, field.column)()
    if field in TIMES:
        return [value or UNSET for value in values]
    return values


def view_json(topic: str, event: EventView, cut_bytes: int | None = None) -> EventJson:
    """An event of the desk as JSON."""
    key, key_encoding = key_json(event.key)
    encoding, payload, cut = payload_json(event.payload, cut_bytes)
    values = structs.asdict(event) | {
        "topic": topic,
        "key": key,
        "key_encoding": key_encoding,
        "encoding": encoding,
        "payload": payload,
        "bytes": len(event.payload),
        "cut": cut,
    }
    values |= {one.name: values[one.name] or UNSET for one in TIMES}
    return EventJson(*map(values.__getitem__, EventJson.__struct_fields__))


def _view(page: Page, lo: int, hi: int) -> Batch:
    whole = page.batch
    return Batch(whole.topic, whole.body, whole.header, lo, hi)
