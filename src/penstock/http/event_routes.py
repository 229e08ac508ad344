"""The routes about events, with what the OpenAPI document says of them."""

from __future__ import annotations

import msgspec

from penstock.http.access import Access
from penstock.http.answers import JSON
from penstock.http.call import Json, Special, SpecialSocket
from penstock.http.events import (
    EventPage,
    OneEvent,
    PageQuery,
    SameId,
    events_by_id,
    one_event,
)
from penstock.http.incoming import Incoming
from penstock.http.ndjson import MEDIA_TYPE as NDJSON
from penstock.http.publishing import PublishedEvent, PublishedMany, publish
from penstock.http.pull import Pull, Pulled, pull
from penstock.http.ranges import ARROW, events
from penstock.http.socket import SocketQuery, socket
from penstock.http.stream import MEDIA_TYPE as SSE
from penstock.http.stream import StreamQuery, stream

_TEXT: Json = {"schema": {"type": "string"}}
_BYTES: Json = {"schema": {"type": "string", "format": "binary"}}
_TOPIC = "/v1/topics/{topic}"
_SUBSCRIPTION = "/v1/subscriptions/{subscriber}/{topic}"


def _query(kind: type[msgspec.Struct]) -> list[Json]:
    """The parameters of a query, as its type has them."""
    schema = msgspec.json.schema(kind)["$defs"][kind.__name__]
    return [
        {"name": name, "in": "query", "required": False, "schema": _without(field)}
        for name, field in schema["properties"].items()
    ]


def _without(field: Json) -> Json:
    """A parameter that is left out is left out, and not null."""
    kinds = [one for one in field.get("anyOf", ()) if one != {"type": "null"}]
    rest = {
        key: value for key, value in field.items() if key not in ("anyOf", "default")
    }
    if len(kinds) == 1:
        return {**kinds[0], **rest}
    return {**rest, **({"anyOf": kinds} if kinds else {})} or field


def _said(kind: type) -> str:
    return " ".join((kind.__doc__ or "").split())


_METADATA: list[Json] = [
    {
        "name": f"Penstock-{name}",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "Of an event whose body is its payload.",
    }
    for name in ("Key", "Id", "Priority", "Parent", "Dedup-Id")
]

EVENTS: tuple[Special | SpecialSocket, ...] = (
    Special(
        method="GET",
        path=f"{_TOPIC}/events",
        access=Access.FOLLOW,
        handle=events,
        describe={
            "operationId": "get-events",
            "summary": "A page of events; or a range of them, as lines or as Arrow",
            "description": _said(PageQuery)
            + " A range that is streamed may have far more events than a page.",
            "parameters": _query(PageQuery),
            "responses": {
                "200": {
                    "description": _said(EventPage),
                    "answer": EventPage,
                    "content": {NDJSON: _TEXT, ARROW: _BYTES},
                }
            },
        },
    ),
    Special(
        method="POST",
        path=f"{_TOPIC}/events",
        access=Access.PUBLISH,
        handle=publish,
        describe={
            "operationId": "post-events",
            "summary": "Publish: an event, an array, lines of them, or any bytes",
            "description": "Answered when the events are on disk. Lines are answered "
            "by lines, in order, also while the body has not ended: an offset and an "
            "id, or what is wrong. A body of any other type is the payload.",
            "parameters": _METADATA,
            "requestBody": {
                "required": True,
                "content": {
                    JSON: {"body": Incoming | list[Incoming]},
                    NDJSON: _TEXT,
                    "application/octet-stream": _BYTES,
                },
            },
            "responses": {
                "201": {
                    "description": "Stored.",
                    "answer": (PublishedEvent, PublishedMany),
                },
                "200": {
                    "description": "Lines in answer to lines.",
                    "content": {NDJSON: _TEXT},
                },
            },
        },
    ),
    Special(
        method="GET",
        path=f"{_TOPIC}/events/{{offset}}",
        access=Access.FOLLOW,
        handle=one_event,
        describe={
            "operationId": "get-event",
            "summary": "One event, and what became of it in every subscription",
            "responses": {"200": {"description": _said(OneEvent), "answer": OneEvent}},
        },
    ),
    Special(
        method="GET",
        path="/v1/events/{id}",
        access=Access.READ,
        handle=events_by_id,
        describe={
            "operationId": "get-events-by-id",
            "summary": "The events with an id, of all topics",
            "responses": {"200": {"description": _said(SameId), "answer": SameId}},
        },
    ),
    Special(
        method="GET",
        path=f"{_TOPIC}/stream",
        access=Access.FOLLOW,
        handle=stream,
        describe={
            "operationId": "get-stream",
            "summary": "Follow a topic, by server-sent events",
            "description": _said(StreamQuery)
            + " The id of an event is its offset: Last-Event-ID goes on behind it.",
            "parameters": [
                *_query(StreamQuery),
                {
                    "name": "Last-Event-ID",
                    "in": "header",
                    "required": False,
                    "schema": {"type": "string"},
                },
            ],
            "responses": {
                "200": {"description": "Events.", "content": {SSE: _TEXT}},
            },
        },
    ),
    Special(
        method="POST",
        path=f"{_SUBSCRIPTION}/pull",
        access=Access.CONSUME,
        handle=pull,
        describe={
            "operationId": "post-pull",
            "summary": "Settle events, and wait for more",
            "description": _said(Pull) + " Answered when the acks are on disk.",
            "body": Pull,
            "responses": {"200": {"description": _said(Pulled), "answer": Pulled}},
        },
    ),
    SpecialSocket(
        path=f"{_TOPIC}/socket",
        access=Access.FOLLOW,
        handle=socket,
        describe={
            "operationId": "get-socket",
            "summary": "Follow a topic, by a WebSocket with a window and acks",
            "description": _said(SocketQuery),
            "parameters": _query(SocketQuery),
            "responses": {"101": {"description": "A WebSocket."}},
        },
    ),
)
