"""The routes of the tweet server, as the original one has them.

    /                 what there is, as JSON, and the last message sent of each stream
    /tweets/1, /2     server-sent events; their ids are 1, 2, 3 and so on
    /emotion_values   how words feel: word, tab, value, CRLF

A reader that comes with ``Last-Event-ID: n`` goes on at n + 1, one that comes with
``?from=n`` begins at n, any other one at 1. Behind the last message there is 204, which
tells a reader not to come again. All else is 404, with the reason as JSON.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route

from penstock.tweets.stream import Stream
from penstock.tweets.words import as_text

ABOUT = (
    "Made-up tweets as server-sent events. The sentiment of a tweet is the sum of the "
    "values of its words, divided by the number of its words. Some messages are "
    '{"message": panic}, which is no JSON: whoever processes it may crash, and has to '
    "be back for the next one. The rate varies by an order of magnitude."
)
# Longer numbers are no messages of ours.
_MAX_DIGITS = 18


def application(streams: Mapping[str, Stream]) -> Starlette:
    """The server's routes, with a stream for each name below /tweets/."""
    begun_s = time.monotonic()
    routes = {
        "routes": [*(f"/tweets/{name}" for name in streams), "/emotion_values", "/"]
    }

    def uptime_s() -> float:
        return time.monotonic() - begun_s

    async def index(_: Request) -> Response:
        sent = {name: stream.tally.last for name, stream in streams.items()}
        return JSONResponse({**routes, "sent": sent, "message": ABOUT})

    async def emotion_values(_: Request) -> Response:
        return PlainTextResponse(as_text())

    async def tweets(request: Request) -> Response:
        stream = streams.get(request.path_params["name"])
        if stream is None:
            raise HTTPException(404)
        first, goes_on = _first(request)
        if goes_on:
            stream.goes_on(first)
        if stream.is_over(first):
            return Response(status_code=204)
        return StreamingResponse(
            stream.frames(first, uptime_s),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-cache"},
        )

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "what it is registered for"
        text = f"{request.url.path}: {error.detail.lower()}"
        return JSONResponse({"error": text, **routes}, error.status_code)

    return Starlette(
        routes=[
            Route("/", index),
            Route("/emotion_values", emotion_values),
            Route("/tweets/{name}", tweets),
        ],
        exception_handlers={HTTPException: refused},
    )


def _first(request: Request) -> tuple[int, bool]:
    """The number of the first message that the reader wants; whether it goes on."""
    last = request.headers.get("last-event-id")
    if last:
        return _number("Last-Event-ID", last, 0) + 1, True
    return _number("from", request.query_params.get("from", "1"), 1), False


def _number(what: str, text: str, least: int) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    if plain and (number := int(text)) >= least:
        return number
    raise HTTPException(400, f"{what} is {text!r}: must be a number from {least}")
