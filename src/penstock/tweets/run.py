"""The life of a tweet server: bind, serve, tell how far it is, end.

Its routes are those of the original server:

    /                 what there is, as JSON, and the last message sent of each stream
    /tweets/1, /2     server-sent events; their ids are 1, 2, 3 and so on
    /emotion_values   how words feel: word, tab, value, CRLF

A reader that comes with ``Last-Event-ID: n`` goes on at n + 1, one that comes with
``?from=n`` begins at n, any other one at 1. Behind the last message there is 204, which
tells a reader not to come again. All else is 404, with the reason as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import uvicorn
import uvloop
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

from penstock.tweets.generator import Generator
from penstock.tweets.options import STREAMS, TweetOptions
from penstock.tweets.pace import MessagePace
from penstock.tweets.stream import Stream, StreamTally
from penstock.tweets.words import as_text

ABOUT = (
    "Made-up tweets as server-sent events. The sentiment of a tweet is the sum of the "
    "values of its words, divided by the number of its words. Some messages are "
    '{"message": panic}, which is no JSON: its processor may crash, and has to '
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


# Between looks whether it is to end.
WATCH_S = 0.05
# Readers that take nothing any more are left after this.
DRAIN_S = 2


class StreamReport(Protocol):
    """Who starts a server: says when to end, and is told how far it is."""

    @property
    def stopping(self) -> threading.Event: ...
    def ready(self, **info: object) -> None: ...
    def tell(self, *, events: int, **info: object) -> None: ...


def serve(
    options: TweetOptions, watched: StreamReport, announce: Callable[[str], None]
) -> None:
    """Serve until ``watched`` is stopping; ``announce`` gets the address.

    Raises OSError if it cannot listen there, MissingExtra.
    """
    tallies = {name: StreamTally() for name in STREAMS}
    pace = MessagePace(options.rate, steady=options.steady)
    streams = {
        name: Stream(
            generator=Generator(
                options.seed,
                int(name),
                panic_rate=options.panic_rate,
                malformed_rate=options.malformed_rate,
            ),
            pace=pace,
            count=options.last.get(name, options.count),
            stopping=watched.stopping.is_set,
            tally=tallies[name],
        )
        for name in STREAMS
    }
    config = uvicorn.Config(
        application(streams),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=DRAIN_S,
    )
    with _bound(options.host, options.port) as sock:
        host, port = sock.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        server = _Server(config)

        def ready() -> None:
            watched.ready(host=host, ports={"http": port}, url=url)
            announce(url)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(server, sock, watched, tallies, ready))


class _Server(uvicorn.Server):
    """Without signals of its own: its caller has them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(
    server: _Server,
    sock: socket.socket,
    watched: StreamReport,
    tallies: Mapping[str, StreamTally],
    ready: Callable[[], None],
) -> None:
    serving = asyncio.create_task(server.serve([sock]))
    is_ready = False
    while not serving.done():
        if server.started and not is_ready:
            ready()
            is_ready = True
        _tell(watched, tallies)
        if watched.stopping.is_set():
            server.should_exit = True
        await asyncio.wait([serving], timeout=WATCH_S)
    _tell(watched, tallies)
    await serving


def _tell(watched: StreamReport, tallies: Mapping[str, StreamTally]) -> None:
    watched.tell(
        events=sum(one.events for one in tallies.values()),
        lag=None,
        errors=0,
        clients=sum(one.clients for one in tallies.values()),
        sent={name: one.last for name, one in tallies.items()},
    )


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens there; raises OSError that says where."""
    where = f"{host}:{port}"
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise OSError(error.errno, error.strerror, where) from error
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen()
        except OSError as error:
            raise OSError(error.errno, error.strerror, where) from error
        yield sock
