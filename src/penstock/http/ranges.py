"""A range of a topic as a stream: JSON lines, or Arrow; memory does not grow with it.

A piece is read, made and sent before the next one is read: a client that reads slowly
slows down the reading, and no other client.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.errors import InvalidArgument, PenstockError
from penstock.http import arrow_range
from penstock.http.call import Call
from penstock.http.event_filter import EventFilter, picked
from penstock.http.event_json import CUT_BYTES, events_json
from penstock.http.events import PageStart, event_page, filter_of, start_of
from penstock.http.house import House
from penstock.http.ndjson import MEDIA_TYPE as NDJSON
from penstock.http.reading import query_of, typed
from penstock.http.scanning import batches
from penstock.http.watching import watched
from penstock.log import Batch

ARROW = arrow_range.MEDIA_TYPE


class RangeQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which events: from ``offset`` or ``timestamp`` on, in front of ``until``.

    ``limit``: at most so many. ``key``, ``type`` and ``search`` choose among them.
    ``whole=false``: long payloads are cut, in lines.
    """

    offset: PageStart | None = None
    timestamp: PageStart | None = None
    tail: PageStart | None = None
    until: PageStart | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    key: str | None = None
    type: str | None = None
    search: str | None = None
    whole: bool = True


async def events(call: Call) -> Response:
    """Events as the client likes them: a page, lines, or Arrow."""
    wanted = accepted(call.request.headers.get("accept", ""))
    if wanted not in (NDJSON, ARROW):
        return await event_page(call)
    query = typed(query_of(call.request.scope["query_string"]), RangeQuery, "events")
    name = call.path["topic"]
    views = _views(call.house, name, query)
    cut = None if query.whole else CUT_BYTES
    pieces = _lines(views, cut) if wanted == NDJSON else arrow_range.pieces(name, views)
    return Streamed(call, pieces, wanted)


def accepted(header: str) -> str:
    """Which of the forms that we have a client names first; nothing if none."""
    for part in header.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in (NDJSON, ARROW, "application/json"):
            return kind
    return ""


class Streamed(Response):
    """Sends pieces as they are made, none before the one in front of it was taken."""

    def __init__(
        self, call: Call, pieces: AsyncGenerator[bytes, None], media_type: str
    ) -> None:
        """Raises LimitReached: it counts as an open stream from now on."""
        super().__init__(None, 200, {"cache-control": "no-store"}, media_type)
        del self.headers["content-length"]
        self._house = call.house
        self._pieces = pieces
        self._open = ExitStack()
        one = call.house.opened.one(call.still, call.account)
        self._guest = self._open.enter_context(one)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._open:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            whole = scope["method"] == "HEAD" or await self._stream(receive, send)
            if whole:
                await send(
                    {"type": "http.response.body", "body": b"", "more_body": False}
                )

    async def _stream(self, receive: Receive, send: Send) -> bool:
        """Whether all of it was sent; a range that was not must not look whole."""
        idle_s = self._house.options.stream_idle_s
        async with (
            aclosing(self._pieces) as pieces,
            watched(receive, self._guest) as watch,
        ):
            try:
                async for piece in pieces:
                    if piece:
                        await watch.write(send, piece, idle_s)
                    else:
                        await asyncio.sleep(0)
                    if watch.over:
                        return False
            except PenstockError:
                return False  # the topic was deleted meanwhile
        return True


def _views(house: House, name: str, query: RangeQuery) -> AsyncIterator[Batch]:
    """The events that are wanted; raises UnknownTopic, InvalidArgument at once."""
    topic, options = house.broker.log.topic(name), house.options
    most = options.max_query_events
    if query.limit is not None and query.limit > most:
        reason = f"argument `limit` is {query.limit}: must be at most {most}"
        raise InvalidArgument("events", reason)
    places = (query.offset, query.timestamp, query.tail)
    if sum(place is not None for place in places) > 1:
        reason = "say one of `offset`, `timestamp` and `tail`"
        raise InvalidArgument("events", reason)
    end = topic.end_offset if query.until is None else query.until
    end = min(end, topic.end_offset)
    start = start_of(topic, query.offset, query.timestamp)
    if query.tail is not None:
        start = max(end - query.tail, 0)
    event_filter = filter_of(query.key, query.type, query.search)
    return _chosen(house, name, (start, end), event_filter, query.limit or most)


async def _chosen(
    house: House,
    name: str,
    range_: tuple[int, int],
    event_filter: EventFilter,
    limit: int,
) -> AsyncIterator[Batch]:
    async for batch in batches(house.broker.log, name, *range_):
        views = picked(batch, event_filter.indexes(batch)) if event_filter else [batch]
        if not views:  # so that a client that has gone is noticed
            yield Batch(batch.topic, batch.body, batch.header, batch.lo, batch.lo)
        for view in views:
            view.hi = min(view.hi, view.lo + limit)
            limit -= len(view)
            yield view
            if not limit:
                return


async def _lines(
    views: AsyncIterator[Batch], cut_bytes: int | None
) -> AsyncGenerator[bytes, None]:
    async for view in views:
        yield b"\n".join([*events_json(view, cut_bytes), b""])
