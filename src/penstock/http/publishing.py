"""Publishing over HTTP: one event, an array of them, or a body that is the payload.

An answer comes when the events are on disk. An array is stored as a whole or not at
all. Lines of events are another matter: ndjson.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from penstock.errors import BadRequest, InvalidBatch
from penstock.http.call import Call
from penstock.http.incoming import Arrived, Incoming, arrived, read_array, read_one
from penstock.http.ndjson import MEDIA_TYPES as NDJSON
from penstock.http.ndjson import publish_lines
from penstock.http.pacing import paced
from penstock.http.storing import StoredEvents, store_in_time
from penstock.http.trace_context import context_of, put_into
from penstock.log import Columns
from penstock.model.event import MAX_PRIORITY, SETTABLE

JSON = "application/json"
_HEADER = "penstock-header-"
# What a header can say, by the names of the fields; ``headers`` are headers.
_FIELDS = tuple(
    one.name.replace("_", "-") for one in SETTABLE if one.name != "headers"
) + ("dedup-id",)


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Where an event went; ``id`` is None if it is gone already."""

    topic: str
    offset: int
    id: str | None


class PublishedMany(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where events went: from offset ``first`` on.

    ``offsets`` is there if some have a dedup id: such an event may be an earlier one.
    """

    topic: str
    first: int
    count: int
    ids: list[str | None]
    offsets: list[int] | None = None


async def publish(call: Call) -> Response:
    """Publish what the body holds, as its media type says."""
    kind = media_type(call)
    if kind in NDJSON:
        return await publish_lines(call)
    await paced(call.account, call.house.options.body_s)
    body = await call.body()
    if kind == JSON:
        if body.lstrip()[:1] == b"[":
            return await _publish_many(call, read_array(body))
        new = arrived([read_one(body)], _now_ms(call), producer_of(call))
    else:
        new = _raw(call, body)
    stored = await _stored(call, new)
    (id_,) = stored.ids(call.house.broker)
    answer = PublishedEvent(topic=stored.topic, offset=stored.offsets[0], id=id_)
    return _created(answer)


def media_type(call: Call) -> str:
    kind = call.request.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def producer_of(call: Call) -> str | None:
    """Who publishes, by the name of a token or user."""
    return call.who.name or None


async def _publish_many(call: Call, rows: list[Incoming]) -> Response:
    if not rows:
        raise InvalidBatch("number of events", 0, "at least 1")
    stored = await _stored(call, arrived(rows, _now_ms(call), producer_of(call)))
    return _created(
        PublishedMany(
            topic=stored.topic,
            first=stored.offsets[0],
            count=len(stored.offsets),
            ids=stored.ids(call.house.broker),
            offsets=list(stored.offsets) if stored.once else None,
        )
    )


async def _stored(call: Call, new: Arrived) -> StoredEvents:
    put_into(new.columns, context_of(call.request.headers.raw))
    most_s = call.house.options.body_s
    stored = await store_in_time(
        call.house, call.path["topic"], new, call.account, most_s, call.check_still
    )
    await call.house.promises.kept(stored.group)
    return stored


def _created(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), 201, media_type=JSON)


def _now_ms(call: Call) -> int:
    return int(call.house.promises.now_s() * 1000)


# A body that is the payload


def _raw(call: Call, body: bytes) -> Arrived:
    """A payload of any bytes; what else is known of it stands in headers."""
    given, headers = _metadata(call.request.headers.raw)
    if "\0" in "".join(given.values()):
        raise BadRequest("a Penstock- header contains a NUL character")
    # Any: the value of whichever field.
    said: dict[str, Any] = {name.replace("-", "_"): given[name] for name in given}
    said["priority"] = _priority(given.get("priority", "0"))
    row = Incoming(headers=headers or None, text="", **said)
    new = arrived([row], _now_ms(call), producer_of(call))
    return Arrived(_with_payload(new.columns, body), new.dedup_ids)


def _with_payload(columns: Columns, payload: bytes) -> Columns:
    columns.payloads[0] = payload
    return columns


def _metadata(
    raw: Iterable[tuple[bytes, bytes]],
) -> tuple[dict[str, str], dict[str, str]]:
    """What ``Penstock-`` headers say: of the event, and the headers it is to have."""
    given: dict[str, str] = {}
    headers: dict[str, str] = {}
    for name_, value in raw:
        name = name_.decode("latin-1").lower()
        if name.startswith(_HEADER):
            headers[name.removeprefix(_HEADER)] = _text(value)
        elif name.startswith("penstock-"):
            field = name.removeprefix("penstock-")
            if field not in _FIELDS:
                known = ", ".join(f"Penstock-{one.title()}" for one in _FIELDS)
                raise BadRequest(
                    f"there is no header Penstock-{field.title()}; there are {known} "
                    "and Penstock-Header-<name>"
                )
            given[field] = _text(value)
    return given, headers


def _text(value: bytes) -> str:
    """Headers are bytes; most who send more than ASCII send UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _priority(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text[:9]) > MAX_PRIORITY:
        limit = f"a whole number from 0 to {MAX_PRIORITY}"
        raise InvalidBatch("Penstock-Priority", text[:80], limit)
    return int(text)
