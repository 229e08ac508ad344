"""Pages of events, single events with what became of them, and events by their id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, cast

import msgspec
from msgspec import Meta, Raw
from starlette.responses import Response

from penstock.desk.events import FIND
from penstock.desk.views.events import (
    DeliveryRow,
    EventDetail,
    EventMatches,
    TopicEventView,
)
from penstock.errors import InvalidArgument, UnknownEvent
from penstock.http import search
from penstock.http.answers import JSON, json_answer
from penstock.http.call import Call
from penstock.http.event_filter import EventFilter
from penstock.http.event_json import CUT_BYTES, EventJson, view_json
from penstock.http.house import House
from penstock.http.reading import query_of, typed
from penstock.http.scanning import MAX_ANSWER_BYTES, Scanned, backwards, forwards
from penstock.log import StoredTopic

MAX_EVENTS = 1000
# Events of one id.
MAX_SAME_ID = 100
# Of the effort of a search, one part is for where the page in front of it begins.
SHARE_TO_LOOK_BACK = 4

PageStart = Annotated[int, Meta(ge=0, le=2**62)]
PageLimit = Annotated[int, Meta(ge=1, le=MAX_EVENTS)]


class PageQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which events: from ``offset`` or ``timestamp`` on, or the last ``tail``.

    All of them are in front of the offset ``until``. ``key``, ``type`` (the header of
    that name), ``id`` and ``search`` choose among them; ``whole``: long payloads are
    not cut.
    """

    offset: PageStart | None = None
    timestamp: PageStart | None = None
    tail: PageLimit | None = None
    until: PageStart | None = None
    limit: PageLimit = 100
    key: str | None = None
    type: str | None = None
    id: str | None = None
    search: str | None = None
    whole: bool = False


class EventPage(msgspec.Struct, kw_only=True):
    """Some events in their order, and where others are.

    ``next`` and ``previous`` are the offsets at which the pages behind and in front of
    this one begin, None if there is nothing. A search that looked at as many events as
    it may (``scanned``) ends there, perhaps without any: it goes on at ``next``.
    """

    events: list[EventJson]
    next: int | None
    previous: int | None
    start_offset: int
    end_offset: int
    scanned: int
    more: bool


class OneEvent(msgspec.Struct, kw_only=True):
    """An event, and what became of it in every subscription of its topic."""

    event: EventJson
    deliveries: list[DeliveryRow]
    more_deliveries: bool
    letters_cut: bool


class SameId(msgspec.Struct, kw_only=True):
    """Events with one id, of all topics."""

    events: list[EventJson]
    cut: bool


async def event_page(call: Call) -> Response:
    """A page of a topic; raises UnknownTopic, InvalidArgument."""
    query = typed(query_of(call.request.scope["query_string"]), PageQuery, "events")
    page = await page_of(call.house, call.path["topic"], query)
    return Response(msgspec.json.encode(page), 200, media_type=JSON)


async def page_of(house: House, name: str, query: PageQuery) -> EventPage:
    topic = house.broker.log.topic(name)
    _check_one(query)
    if query.id is not None:
        return await _page_of_id(house, topic, query)
    look = Scanned(
        event_filter=filter_of(query.key, query.type, query.search),
        limit=query.tail or query.limit,
        max_scan=house.options.search_events,
        whole=query.whole,
    )
    low, high = topic.start_offset, _until(topic, query.until)
    log = house.broker.log
    if query.tail is not None:
        first = await backwards(log, name, low, high, look)
        behind = high
    else:
        first = min(max(start_of(topic, query.offset, query.timestamp), low), high)
        behind = await forwards(log, name, first, high, look)
    end = topic.end_offset if query.tail is not None else high
    return EventPage(
        # JSON already, which the encoder takes as it is.
        events=cast("list[EventJson]", list(map(Raw, look.events))),
        next=behind if behind < end else None,
        previous=await _previous(house, name, low, first, look),
        start_offset=topic.start_offset,
        end_offset=topic.end_offset,
        scanned=look.scanned,
        more=behind < end,
    )


async def _previous(
    house: House, name: str, low: int, first: int, look: Scanned
) -> int | None:
    """Where the page in front of ``first`` begins, as far as one looks for that."""
    if first <= low:
        return None
    if not look.event_filter:
        return max(low, first - look.limit)
    share = max(look.max_scan // SHARE_TO_LOOK_BACK, 1)
    back = Scanned(
        event_filter=look.event_filter, limit=look.limit, max_scan=share, dry=True
    )
    return await backwards(house.broker.log, name, low, first, back)


def start_of(topic: StoredTopic, offset: int | None, timestamp: int | None) -> int:
    if timestamp is not None:
        return topic.offset_at(timestamp)
    return topic.start_offset if offset is None else offset


def filter_of(key: str | None, type_: str | None, text: str | None) -> EventFilter:
    """What is looked for; raises InvalidArgument."""
    return EventFilter(
        key=None if key is None else key.encode(errors="replace"),
        type=type_,
        search=search.parsed(text) if text else None,
    )


async def one_event(call: Call) -> Response:
    """One event and its deliveries; raises UnknownTopic, UnknownEvent."""
    offset = _offset(call.path["offset"])
    arguments = {"topic": call.path["topic"], "offset": offset}
    detail = call.house.desk.ask("events.show", arguments)
    assert isinstance(detail, EventDetail), "what the verb answers"
    return json_answer(
        OneEvent(
            event=view_json(detail.event.topic, detail.event),
            deliveries=detail.deliveries,
            more_deliveries=detail.more_deliveries,
            letters_cut=detail.letters_cut,
        )
    )


async def events_by_id(call: Call) -> Response:
    """The events with an id, in all topics; raises UnknownEvent."""
    found, cut = await _found(call.house, call.path["id"], MAX_SAME_ID)
    return json_answer(SameId(events=found, cut=cut))


async def _found(house: House, id_: str, limit: int) -> tuple[list[EventJson], bool]:
    events: list[EventJson] = []
    cut = False
    async for part in _parts_of_id(house, id_, limit):
        events += [view_json(one.topic, one, CUT_BYTES) for one in part.events]
        cut = part.cut
    return events, cut


async def _parts_of_id(
    house: House, id_: str, limit: int
) -> AsyncIterator[EventMatches]:
    """Ask for an id until all was said, and let others have their turn meanwhile."""
    arguments: dict[str, object] = {"id": id_, "limit": limit}
    while True:
        found = house.desk.ask(FIND, arguments)
        assert isinstance(found, EventMatches), "what the verb answers"
        yield found
        if found.next is None:
            return
        arguments = {"next": found.next}
        await asyncio.sleep(0)


async def _page_of_id(house: House, topic: StoredTopic, query: PageQuery) -> EventPage:
    assert query.id is not None, "asked for only then"
    low = max(start_of(topic, query.offset, query.timestamp), topic.start_offset)
    high = _until(topic, query.until)
    mine: list[TopicEventView] = []
    behind: int | None = None
    scanned = 0
    try:
        async for part in _parts_of_id(house, query.id, MAX_EVENTS):
            scanned += len(part.events)
            mine += [
                one
                for one in part.events
                if one.topic == topic.name and low <= one.offset < high
            ]
            # At once: they may be large, and most of them are not wanted.
            mine, further = _fitting(mine, query)
            behind = min(filter(None, (behind, further)), default=None)
    except UnknownEvent:
        mine = []
    cut = None if query.whole else CUT_BYTES
    return EventPage(
        events=[view_json(topic.name, one, cut) for one in mine],
        next=behind,
        previous=None,
        start_offset=topic.start_offset,
        end_offset=topic.end_offset,
        scanned=scanned,
        more=behind is not None,
    )


def _fitting(
    found: list[TopicEventView], query: PageQuery
) -> tuple[list[TopicEventView], int | None]:
    """What an answer holds of some events, and the offset of the first behind it."""
    tail = query.tail is not None
    found = sorted(found, key=lambda one: one.offset, reverse=tail)
    size = count = 0
    for one in found[: query.tail or query.limit]:
        size += len(one.payload) if query.whole else min(len(one.payload), CUT_BYTES)
        if count and size > MAX_ANSWER_BYTES:
            break
        count += 1
    kept, rest = found[:count], found[count:]
    if tail:
        return kept[::-1], None
    return kept, rest[0].offset if rest else None


def _check_one(query: PageQuery) -> None:
    places = (query.offset, query.timestamp, query.tail)
    if sum(place is not None for place in places) > 1:
        reason = "say one of `offset`, `timestamp` and `tail`"
        raise InvalidArgument("events", reason)


def _until(topic: StoredTopic, until: int | None) -> int:
    if until is None:
        return topic.end_offset
    return max(min(until, topic.end_offset), topic.start_offset)


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        reason = f"argument `offset` is {text[:80]!r}: must be a whole number"
        raise InvalidArgument("events.show", reason)
    return int(text)
