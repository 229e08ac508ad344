"""The life of a tweet server: bind, serve, tell how far it is, end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import uvicorn
import uvloop

from penstock.tweets.app import application
from penstock.tweets.generator import Generator
from penstock.tweets.options import STREAMS, TweetOptions
from penstock.tweets.pace import MessagePace
from penstock.tweets.stream import Stream, StreamTally

# Between looks whether it is to end.
WATCH_S = 0.05
# Readers that take nothing any more are left after this.
DRAIN_S = 2


class StreamReport(Protocol):
    """Who starts a server: says when to end, and is told how far it is."""

    @property
    def stopping(self) -> threading.Event: ...
    def ready(self, **told: object) -> None: ...
    def tell(self, *, events: int, **told: object) -> None: ...


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
    """Without signals of its own: whoever started it has them."""

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
