"""Events of a topic as server-sent events: live, from any place on, for as long as one
likes.

The id of an event is its offset. A client that comes again says the last one it has
seen, and goes on behind it. Many events go out in one write; nothing is taken from the
broker before the write in front of it was accepted, so a slow reader costs disk and not
memory. A named subscriber keeps its place; what was written to it is settled.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.delivery.delays import BEGINNING
from penstock.delivery.owed import Portion
from penstock.http.call import Call
from penstock.http.event_filter import EventFilter
from penstock.http.event_json import portion_json
from penstock.http.events import filter_of
from penstock.http.following import WINDOW, FollowTerms, address_of, follow, start_in
from penstock.http.house import House
from penstock.http.opened import Guest
from penstock.http.reading import query_of, typed
from penstock.http.stream_consumer import StreamConsumer, offsets_of
from penstock.http.watching import PeerWatch, watched
from penstock.log import Batch
from penstock.model.policy import Policy
from penstock.wire.sse.rendering import KEEP_ALIVE

MEDIA_TYPE = "text/event-stream"
# Silence is broken after this, so that no client takes it for death.
KEEP_ALIVE_S = 15.0
# When a browser that lost us comes again.
RETRY = b"retry: 1000\n\n"
MAX_PACE_MS = 10_000
_FORMAT = "http stream"

_NAMED = Policy(window=WINDOW)
# No answer is asked for: it is settled by being sent.
_READER = Policy(window=WINDOW, qos=0)


class StreamQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where to begin: ``latest``, ``earliest``, an offset, or ``time:`` with ms.

    ``subscriber``: a name that keeps its place, with ``start`` for the first time.
    ``key``, ``type`` and ``search`` choose events. ``pace_ms``: what comes within that
    time is sent together, for a page that draws and not for a program that acts.
    """

    start: str | None = None
    subscriber: str | None = None
    key: str | None = None
    type: str | None = None
    search: str | None = None
    pace_ms: Annotated[int, Meta(ge=0, le=MAX_PACE_MS)] = 0


async def stream(call: Call) -> Response:
    """Follow a topic; raises UnknownTopic, LimitReached, what subscribing raises."""
    query = typed(query_of(call.request.scope["query_string"]), StreamQuery, "stream")
    topic, house = call.path["topic"], call.house
    event_filter = filter_of(query.key, query.type, query.search)
    house.broker.log.topic(topic)
    last = last_seen(call.request.headers.get("last-event-id", ""))
    with ExitStack() as stack:
        guest = stack.enter_context(house.opened.one(call.still, call.account))
        consumer = await _consumer(call, topic, query, last)
        stack.callback(consumer.close)
        pace_s = query.pace_ms / 1000
        return StreamResponse(
            house, guest, consumer, event_filter, pace_s, stack.pop_all()
        )


def last_seen(header: str) -> int | None:
    """The offset that a client has seen last, if it says one."""
    text = header.strip()
    fits = text.isascii() and text.isdigit() and len(text) <= 18
    return int(text) if fits else None


async def _consumer(
    call: Call, topic: str, query: StreamQuery, last: int | None
) -> StreamConsumer:
    house, start = call.house, start_in(query.start)
    known = house.broker.log.topic(topic)
    # Beyond the end: the topic was made anew, and all of it is new to the client.
    behind = None if last is None or last >= known.end_offset else last + 1
    if query.subscriber is None:
        if last is not None:
            start = "earliest" if behind is None else behind
        return await follow(
            house,
            topic,
            None,
            start=start,
            terms=FollowTerms(),
            default=_READER,
            address=address_of(call.request),
            account=call.account,
        )
    call.need_as(topic, query.subscriber)
    consumer = await follow(
        house,
        topic,
        query.subscriber,
        start=start,
        terms=FollowTerms(),
        default=_NAMED,
        address=address_of(call.request),
        account=call.account,
    )
    if behind is not None:
        await _go_on_behind(house, consumer, behind)
    return consumer


async def _go_on_behind(house: House, consumer: StreamConsumer, offset: int) -> None:
    """Trust what the client has seen more than what was written to it.

    Not if others share the subscription, nor if tries have failed: then what the
    broker owes is more than what one client has seen.
    """
    one = consumer.subscription
    if len(one.consumers) > 1 or one.errors or one.policy.order != "log":
        return
    if one.fresh.delayed or house.broker.delays.mark(one.topic) != BEGINNING:
        return  # events did not come in the order of their offsets
    if one.amended or any(not owed.tries for owed in one.owed.singles()):
        return  # sent again on request: the client cannot have seen these
    if one.position() != offset or one.owed:
        house.broker.seek(one.subscriber, one.topic, offset)
        house.promises.kick()
        await house.promises.kept_at_last(house.broker.promised)


class StreamResponse(Response):
    """Writes what the consumer has until client, login, subscription or server end."""

    def __init__(
        self,
        house: House,
        guest: Guest,
        consumer: StreamConsumer,
        event_filter: EventFilter,
        pace_s: float,
        open_: ExitStack,
    ) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(None, 200, headers, MEDIA_TYPE)
        del self.headers["content-length"]
        self._house = house
        self._guest = guest
        self._consumer = consumer
        self.event_filter = event_filter
        self._pace_s = pace_s
        self._open = open_
        self._passed: int | None = None
        """The last event that the event_filter has kept back, if none followed it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._open:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            if scope["method"] != "HEAD":
                async with watched(
                    receive, self._guest, self._consumer.notifier
                ) as watch:
                    await self._stream(send, watch)
                if watch.gone:
                    return
            await send({"type": "http.response.body", "body": b""})

    async def _stream(self, send: Send, watch: PeerWatch) -> None:
        consumer, idle_s = self._consumer, self._house.options.stream_idle_s
        await watch.write(send, RETRY, idle_s)
        while not watch.over and consumer.ended_by is None:
            portions = consumer.take()
            if not portions:
                if not await consumer.notifier.wait(KEEP_ALIVE_S):
                    await watch.write(send, self._keep_alive(), idle_s)
                continue
            # A consumer that is behind is not slowed down on top of that.
            pause_s = 0.0 if consumer.subscription.cursor.unsent() else self._pace_s
            if data := self._frames(portions):
                await watch.write(send, data, idle_s)
                consumer.peer.bytes_out += len(data)
            # Others have a turn, and we hear whether the client is still there.
            await watch.pause(pause_s)
            if watch.gone:
                return  # nothing counts as written
            if consumer.subscription.policy.qos:
                consumer.settle(offsets_of(portions))

    def _keep_alive(self) -> bytes:
        """A comment; or the place reached, if nothing there was wanted."""
        passed, self._passed = self._passed, None
        return KEEP_ALIVE if passed is None else b"id: %d\n\n" % passed

    def _frames(self, portions: list[Portion]) -> bytes:
        wanted = [part for one in portions for part in self._wanted(one)]
        return b"".join(map(frames, wanted))

    def _wanted(self, portion: Portion) -> list[Portion]:
        if not self.event_filter:
            return [portion]
        page, whole = portion.page, portion.page.batch
        view = Batch(whole.topic, whole.body, whole.header, portion.lo, portion.hi)
        indexes = self.event_filter.indexes(view)
        last = portion.hi - 1
        reached = indexes and indexes[-1] == last
        self._passed = None if reached else whole.offset_of(last)
        return [Portion(page, index, index + 1, portion.tries) for index in indexes]


def frames(portion: Portion) -> bytes:
    """The events of a portion; those of a whole page are made once for all clients."""
    page = portion.page
    if portion.hi - portion.lo < len(page):
        return _rendered(portion)
    known = page.rendered.get(_FORMAT)
    if known is None:
        known = page.rendered[_FORMAT] = [_rendered(portion)]
    return known[0]


def _rendered(portion: Portion) -> bytes:
    offset_of, events = portion.page.batch.offset_of, portion_json(portion)
    return b"".join(
        [
            b"id: %d\nevent: event\ndata: %b\n\n" % (offset_of(index), event)
            for index, event in enumerate(events, portion.lo)
        ]
    )
