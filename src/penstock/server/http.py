"""The HTTP listener: uvicorn on the broker's loop, within the server's limits.

uvicorn is driven by hand: it gets a bound socket, catches no signals, logs nothing, and
ends as the server does: nothing new is accepted, streams are told to end, what was
begun is answered. Connections count among all others; one that takes its time with a
request, or does not take its answer, is closed. A stranger is sent a little at a time,
as it takes it: what waits for it would be held here.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.errors import (
    BadRequest,
    LimitReached,
    PenstockError,
    TooLarge,
    TooSlow,
)
from penstock.gateway.gateway import LOGIN_BYTES
from penstock.http import problem
from penstock.http.answers import SECURITY
from penstock.http.guard import PEER_CERTIFICATE, PLACE
from penstock.http.options import HttpOptions
from penstock.server.accepting import Acceptor, Entrance, no_tls
from penstock.server.reads import Reads
from penstock.server.strangers import NO_PLACE, ConnectionSlot
from penstock.server.taking import Taking
from penstock.server.websocket import WebSocket, silent

# How long a peer may go on sending a body that was refused, before it is cut off: who
# is still sending does not see an answer on a connection that is closed at once.
LINGER_S = 2.0
HEADERS_TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE.value
DRAIN_TICK_S = 0.05
# Most bytes of a read, of any peer and of one that has its body taken by an
# application: that one was asked who it is.
READ_BYTES = 16 << 10
BODY_READ_BYTES = 256 << 10
# What a stranger is sent at a time, and how much the system may have for it before
# there is more: so next to nothing of it waits here, over TLS neither.
PIECE_BYTES = 16 << 10
UNTAKEN_BYTES = 32 << 10
# Nothing says when it was taken: it is looked at, more and more seldom.
LOOK_S = 0.002
LOOK_MOST_S = 0.5
# Who takes nothing for so long while the server ends does not keep it from ending.
DRAIN_WRITE_S = 3.0


class Entrances(Protocol):
    """Who is let in; see listeners.py."""

    def entrance(
        self,
        sock: socket.socket,
        make: Callable[[ConnectionSlot], asyncio.BaseProtocol],
        refusal: Callable[[LimitReached], bytes],
        tls: Callable[[], ssl.SSLContext | None],
    ) -> Entrance: ...

    def accept(self, entrance: Entrance) -> Acceptor: ...


class HttpServer:
    """One listener; ``start``, ``tick`` every second, ``drain``, ``abort``."""

    def __init__(
        self,
        app: ASGIApp,
        options: HttpOptions,
        door: Entrances,
        end_streams: Callable[[], None],
        *,
        login_inside: Collection[str] = (),
        login_bytes: int = LOGIN_BYTES,
    ) -> None:
        """``login_inside``: paths of WebSockets whose peers log in once they are open;
        until then they may send ``login_bytes``.
        """
        self._door = door
        self._acceptor: Acceptor | None = None
        self._options = options
        self._end_streams = end_streams
        self._config = uvicorn.Config(
            app,
            # uvicorn calls them as the classes they are made from.
            http=_Http,
            ws=partial(  # type: ignore[arg-type]
                WebSocket, login_inside=login_inside, login_bytes=login_bytes
            ),
            ws_max_size=options.max_body_bytes,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=options.keep_alive_s,  # type: ignore[arg-type]
            h11_max_incomplete_event_size=options.max_header_bytes,
        )
        self._server = uvicorn.Server(self._config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffer = memoryview(bytearray(BODY_READ_BYTES))
        """Where reads go: one for all, as what was read is copied at once."""

    async def start(
        self,
        sock: socket.socket,
        tls: Callable[[], ssl.SSLContext | None] = no_tls,
    ) -> None:
        """Accept connections at a socket that is bound."""
        self._config.load()
        self._loop = asyncio.get_running_loop()
        self._server.lifespan = self._config.lifespan_class(self._config)
        await self._server.on_tick(0)  # the date in the first answers
        entrance = self._door.entrance(sock, self._make, _refusal, tls)
        self._acceptor = self._door.accept(entrance)

    def _make(self, place: ConnectionSlot) -> asyncio.BaseProtocol:
        made = _Http(
            self._config, self._server.server_state, self._server.lifespan.state
        )
        made.place = place
        return _HttpReads(made, self._buffer)

    async def tick(self) -> None:
        """Note the date, and close connections that take too long."""
        await self._server.on_tick(0)
        assert self._loop is not None, "it was started"
        now_s = self._loop.time()
        for connection in list(self._connections):
            connection.taking.check(now_s, self._options.write_s)
            if isinstance(connection, _Http):
                connection.check(now_s, self._options)

    def __len__(self) -> int:
        return len(self._connections)

    @property
    def _connections(self) -> set[Any]:
        return self._server.server_state.connections

    def close(self) -> None:
        """Accept no more."""
        if self._acceptor is not None:
            self._acceptor.close()

    async def drain(self) -> None:
        """Answer what was begun, end streams; return when all have gone."""
        self.close()
        self._end_streams()
        assert self._loop is not None, "it was started"
        write_s = min(self._options.write_s, DRAIN_WRITE_S)
        while self._connections:
            for connection in list(self._connections):
                connection.taking.check(self._loop.time(), write_s)
                # WebSockets are streams: the application says goodbye there.
                if isinstance(connection, _Http) and not connection.leaving:
                    connection.shutdown()
            await asyncio.sleep(DRAIN_TICK_S)
        tasks = self._server.server_state.tasks
        if tasks:
            await asyncio.wait(set(tasks))

    async def abort(self) -> None:
        """Cut off every client that is left, and wait until that has ended."""
        for connection in list(self._connections):
            connection.transport.abort()
        tasks = set(self._server.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _Http(H11Protocol):
    """A connection that is counted, and watched while it takes its time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.access_logger = silent
        self.access_log = False
        self.place: ConnectionSlot = NO_PLACE
        """Given back once the connection is gone."""
        self._since_s = self.loop.time()
        """When it began to wait for a request."""
        self._began_s: float | None = None
        """When the first byte of a request came that is not here yet."""
        self.taken = 0
        """Bytes of the request, as far as they were taken in."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.taking = Taking(transport)
        self.app = self._answer
        # For the application, which asks who it is.
        shown = transport.get_extra_info("peercert")
        self.app_state = {
            **self.app_state,
            PEER_CERTIFICATE: shown,
            PLACE: self.place,
        }

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.place.leave()
        self._let_go()

    def _let_go(self) -> None:
        """Be free without a collector: nothing refers to this in a circle."""
        self._unset_keepalive_if_required()
        self.app = self.config.loaded_app
        if self._asked:
            self.cycle.on_response = _nothing

    def data_received(self, data: bytes) -> None:
        if self._idle and self._began_s is None:
            self._began_s = self.loop.time()
        self.taken += len(data)
        super().data_received(data)
        if not self._idle:
            self._began_s = None
            if not self.cycle.more_body:
                self.place.excused()

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        self.taken = 0
        self.cycle.body = bytearray()  # the application takes it no more
        super().on_response_complete()
        if self._idle or self.cycle.more_body:
            self.place.waits()  # nothing, if it is known who it is

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request answered: to a stranger in pieces, each when there is room."""

        async def in_pieces(message: Message) -> None:
            for number, piece in enumerate(_pieces(message)):
                if number:  # the system gets the one before with the next turn
                    await asyncio.sleep(0)
                await self._taken()
                await send(piece)

        app = self.config.loaded_app
        if not self.place.stranger:
            await app(scope, receive, send)
            return
        await self._taken()  # of requests that came at once before it
        await app(scope, receive, in_pieces)

    async def _taken(self) -> None:
        """Return when the peer has most of what it was sent, or is known."""
        look_s = LOOK_S
        while self._holds_up():
            self.place.waits()
            self.taking.more = True
            await asyncio.sleep(look_s)
            look_s = min(2 * look_s, LOOK_MOST_S)
        self.taking.more = False

    def _holds_up(self) -> bool:
        """Whether the peer is to read first; it is cut off if it is gone."""
        if not self.place.stranger or self.transport.is_closing():
            return False
        if self.taking.untaken() <= UNTAKEN_BYTES:
            return False
        if self.taking.hung_up():
            self.transport.abort()
        return not self.transport.is_closing()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        place, self.place = self.place, NO_PLACE
        super().handle_websocket_upgrade(event)
        made: WebSocket = self.transport.get_protocol()  # type: ignore[assignment]
        made.place = place  # it has the place of this one now
        made.begin()
        self._let_go()

    def check(self, now_s: float, options: HttpOptions) -> None:
        """Close it if it takes too long."""
        if not self._idle or self.transport.is_closing():
            return
        if self._answered and self.conn.their_state is h11.SEND_BODY:
            if now_s - self._since_s > LINGER_S:  # the body of what was refused
                self.transport.abort()
        elif self._began_s is not None:
            if now_s - self._began_s > options.header_s:
                slow = TooSlow("the headers", options.header_s, "http.header_s")
                self._refuse(slow)
        elif now_s - self._since_s > options.keep_alive_s:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        if _headers_too_large():
            size, limit = len(self.conn.trailing_data[0]), self.conn_limit
            large = TooLarge(
                "what came of request line and headers",
                size,
                limit,
                "http.max_header_bytes",
            )
            self._refuse(large, HEADERS_TOO_LARGE)
        else:
            self._refuse(BadRequest("the request is not HTTP"))

    @property
    def leaving(self) -> bool:
        return self.transport.is_closing()

    @property
    def conn_limit(self) -> int:
        return self.config.h11_max_incomplete_event_size or 0

    @property
    def _idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._asked or self.cycle.response_complete

    @property
    def _answered(self) -> bool:
        return self._asked and self.cycle.response_complete

    @property
    def _asked(self) -> bool:
        """Whether there was a request; until then there is no cycle, as typed."""
        return bool(self.cycle)

    def _refuse(self, error: PenstockError, status: int | None = None) -> None:
        """Answer before there is a request that could be answered, and close."""
        self.transport.write(_refusal(error, status))
        self.transport.close()


class _HttpReads(Reads):
    def __init__(self, http: _Http, buffer: memoryview) -> None:
        super().__init__(http, buffer[:READ_BYTES])
        self._http = http
        self._all = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        # uvicorn reads no further than this before the application takes it.
        return self._all if self._http.taken > 2 * HIGH_WATER_LIMIT else self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._http.data_received(bytes(self._all[:nbytes]))


def _pieces(message: Message) -> Iterator[Message]:
    """A part of an answer as smaller parts; as it is if it is small."""
    body = message.get("body", b"")
    last = max(0, (len(body) - 1) // PIECE_BYTES * PIECE_BYTES)
    for at in range(0, last, PIECE_BYTES):
        piece = body[at : at + PIECE_BYTES]
        yield {**message, "body": piece, "more_body": True}
    yield {**message, "body": body[last:]} if last else message


def _refusal(error: PenstockError, status: int | None = None) -> bytes:
    answer = problem.refusal(error, status)
    lines = [
        f"HTTP/1.1 {answer.status_code} Refused".encode(),
        b"connection: close",
    ]
    headers = [*answer.raw_headers, *SECURITY]
    lines += [name + b": " + value for name, value in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body)


def _headers_too_large() -> bool:
    """Whether that is the error that is being handled; where it was is forgotten.

    It refers to itself there, and to the connection, which would stay with it.
    """
    error = sys.exc_info()[1]
    if not isinstance(error, h11.RemoteProtocolError):
        return False
    error.__traceback__ = None
    return error.error_status_hint == HEADERS_TOO_LARGE


def _nothing() -> None:
    """The connection that was to be told has gone."""
