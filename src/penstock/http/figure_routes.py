"""The routes of what one looks at: live figures, and metrics for Prometheus."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.http.access import Access
from penstock.http.call import Call, Special
from penstock.http.house import House
from penstock.http.live import LiveView, Looker
from penstock.http.opened import Guest
from penstock.http.reading import query_of, typed
from penstock.http.watching import watched

MEDIA_TYPE = "text/event-stream"
# Frames come every second: a browser that lost us need not wait for longer.
RETRY = b"retry: 1000\n\n"
WAIT_S = 15.0


class LiveQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """``topics``: rows of topics too; ``flow``: frames of the flow as well."""

    topics: bool = True
    flow: bool = False


async def live(call: Call) -> Response:
    """Look every second; raises LimitReached."""
    query = typed(query_of(call.request.scope["query_string"]), LiveQuery, "live")
    wanted = LiveView(topics=query.topics, flow=query.flow)
    with ExitStack() as stack:
        guest = stack.enter_context(call.house.opened.one(call.still, call.account))
        looker = stack.enter_context(call.house.live.look(wanted))
        return LiveResponse(call.house, guest, looker, stack.pop_all())


class LiveResponse(Response):
    """Writes a frame a second until client, login or server end."""

    def __init__(
        self, house: House, guest: Guest, looker: Looker, open_: ExitStack
    ) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(None, 200, headers, MEDIA_TYPE)
        del self.headers["content-length"]
        self._house = house
        self._guest = guest
        self._looker = looker
        self._open = open_

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._open:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            if scope["method"] != "HEAD" and await self._stream(receive, send):
                return
            await send({"type": "http.response.body", "body": b""})

    async def _stream(self, receive: Receive, send: Send) -> bool:
        """Write while the client is there to read; whether it has gone."""
        notifier, idle_s = self._looker.notifier, self._house.options.stream_idle_s
        async with watched(receive, self._guest, notifier) as watch:
            await watch.write(send, RETRY, idle_s)
            while not watch.over:
                if frame := self._looker.take():
                    await watch.write(send, frame, idle_s)
                await notifier.wait(WAIT_S)
        return watch.gone


async def metrics(call: Call) -> Response:
    """The page for Prometheus; its own door, as a setting may open it."""
    if not call.house.options.open_metrics:
        await call.guard.enter(call.request.scope, Access.READ, None)
    accept = call.request.headers.get("accept", "")
    text, content_type = call.house.metrics.text(accept)
    headers = {"cache-control": "no-store", "content-type": content_type}
    return Response(text, 200, headers)


def _flag(name: str, about: str, *, default: bool) -> dict[str, object]:
    schema = {"type": "boolean", "default": default}
    return {"name": name, "in": "query", "description": about, "schema": schema}


FIGURES = (
    Special(
        method="GET",
        path="/v1/live",
        access=Access.READ,
        handle=live,
        describe={
            "summary": "The overview every second, as server-sent events.",
            "description": (
                "`event: overview` has an overview as its data. The first is whole; "
                "others have only the topics that have changed since the one before, "
                "unless some were missed. With `flow=true` there is `event: flow` too."
            ),
            "parameters": [
                _flag("topics", "Rows of topics too.", default=True),
                _flag("flow", "Frames of the flow as well.", default=False),
            ],
            "responses": {
                "200": {
                    "description": "A stream without an end.",
                    "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
                }
            },
        },
    ),
    Special(
        method="GET",
        path="/metrics",
        access=Access.NONE,
        handle=metrics,
        describe={
            "summary": "Metrics for Prometheus.",
            "description": (
                "Needs a token that may read everything, unless `http.open_metrics` "
                "is set. The metrics are those of docs/metrics.md."
            ),
            "responses": {
                "200": {
                    "description": "All metrics, in the format that is asked for.",
                    "content": {"text/plain": {"schema": {"type": "string"}}},
                }
            },
        },
    ),
)
