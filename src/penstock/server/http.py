"""The HTTP listener: uvicorn on the broker's loop, within the server's limits.

uvicorn is driven by hand: it gets a bound socket, catches no signals, logs nothing, and
ends as the server does: nothing new is accepted, streams are told to end, what was
begun is answered. Connections count among all others; one that takes its time with a
request, or does not take its answer, is closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import ssl
import sys
import termios
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)

from penstock.errors import (
    BadRequest,
    LimitReached,
    PenstockError,
    TooLarge,
    TooSlow,
)
from penstock.http import problem
from penstock.http.answers import SECURITY
from penstock.http.guard import PEER_CERTIFICATE
from penstock.http.options import HttpOptions

# What uvicorn has to say, our application has said already.
_silent = logging.getLogger(f"{__name__}.uvicorn")
_silent.setLevel(logging.CRITICAL + 1)

# How long a peer may go on sending a body that was refused, before it is cut off: who
# is still sending does not see an answer on a connection that is closed at once.
LINGER_S = 2.0
HEADERS_TOO_LARGE = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE.value
DRAIN_TICK_S = 0.05
# Who takes nothing for so long while the server ends does not keep it from ending.
DRAIN_WRITE_S = 3.0


class Door(Protocol):
    """Who is let in; see listeners.py."""

    def admit(self, address: str) -> LimitReached | None:
        """Count a connection in; or why it may not come in."""

    def let_go(self, address: str) -> None: ...


class HttpServer:
    """One listener; ``start``, ``tick`` every second, ``drain``, ``abort``."""

    def __init__(
        self,
        app: ASGIApp,
        options: HttpOptions,
        door: Door,
        end_streams: Callable[[], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._tls = tls
        self._options = options
        self._end_streams = end_streams
        self._config = uvicorn.Config(
            app,
            # uvicorn calls them as the classes they are made from.
            http=partial(_Http, door=door),  # type: ignore[arg-type]
            ws=partial(_WebSocket, door=door),  # type: ignore[arg-type]
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

    async def start(self, sock: socket.socket) -> None:
        """Accept connections at a socket that is bound."""
        self._config.load()
        self._config.ssl = self._tls
        self._loop = asyncio.get_running_loop()
        self._server.lifespan = self._config.lifespan_class(self._config)
        await self._server.on_tick(0)  # the date in the first answers
        await self._server.startup([sock])

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
        for server in getattr(self._server, "servers", ()):
            server.close()

    async def drain(self) -> None:
        """Answer what was begun, end streams; return when all have gone."""
        self.close()
        self._end_streams()
        assert self._loop is not None, "it was started"
        write_s = min(self._options.write_s, DRAIN_WRITE_S)
        while self._connections:
            for connection in list(self._connections):
                connection.taking.check(self._loop.time(), write_s)
                # WebSockets are streams: whoever serves one says goodbye.
                if isinstance(connection, _Http) and not connection.leaving:
                    connection.shutdown()
            await asyncio.sleep(DRAIN_TICK_S)
        tasks = self._server.server_state.tasks
        if tasks:
            await asyncio.wait(set(tasks))

    async def abort(self) -> None:
        """Cut off whoever is left, and wait until that has ended."""
        for connection in list(self._connections):
            connection.transport.abort()
        tasks = set(self._server.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _Taking:
    """Whether a peer takes what it is sent.

    Bytes that wait here and in the system are looked at now and then: they become
    others while the peer reads, however slowly.
    """

    __slots__ = ("_left", "_since_s", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._left: tuple[int, int] | None = None
        self._since_s = 0.0
        """Since when they are the same."""

    def check(self, now_s: float, write_s: float) -> None:
        """Cut the peer off if it has taken nothing for so long."""
        waiting = self._transport.get_write_buffer_size()
        left = (waiting, self._unsent()) if waiting else None
        if left is None or left != self._left:
            self._left, self._since_s = left, now_s
        elif now_s - self._since_s > write_s:
            self._transport.abort()

    def _unsent(self) -> int:
        """Bytes that the system has and the peer's system has not."""
        sock = self._transport.get_extra_info("socket")
        try:
            found = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):  # it is closed already
            return 0
        return int.from_bytes(found, sys.byteorder)


class _Http(H11Protocol):
    """A connection that is counted, and watched while it takes its time."""

    def __init__(self, *args: Any, door: Door, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = self.access_logger = _silent
        self.access_log = False
        self._door = door
        self._inside = False
        self._since_s = self.loop.time()
        """When it began to wait for a request."""
        self._began_s: float | None = None
        """When the first byte of a request came that is not here yet."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.taking = _Taking(transport)
        shown = transport.get_extra_info("peercert")
        if shown:  # for whoever asks who it is
            self.app_state = {**self.app_state, PEER_CERTIFICATE: shown}
        refused = self._door.admit(self._address)
        if refused is None:
            self._inside = True
        else:
            self._refuse(refused)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    def data_received(self, data: bytes) -> None:
        if self._idle and self._began_s is None:
            self._began_s = self.loop.time()
        super().data_received(data)
        if not self._idle:
            self._began_s = None

    def on_response_complete(self) -> None:
        self._since_s = self.loop.time()
        super().on_response_complete()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._leave()  # the WebSocket is counted in its place
        super().handle_websocket_upgrade(event)

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
        error = sys.exc_info()[1]
        if isinstance(error, h11.RemoteProtocolError) and (
            error.error_status_hint == HEADERS_TOO_LARGE
        ):
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

    @property
    def _address(self) -> str:
        return "" if self.client is None else self.client[0]

    def _leave(self) -> None:
        if self._inside:
            self._inside = False
            self._door.let_go(self._address)

    def _refuse(self, error: PenstockError, status: int | None = None) -> None:
        """Answer before there is a request that could be answered, and close."""
        answer = problem.refusal(error, status)
        lines = [
            f"HTTP/1.1 {answer.status_code} Refused".encode(),
            b"connection: close",
        ]
        headers = [*answer.raw_headers, *SECURITY]
        lines += [name + b": " + value for name, value in headers]
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + bytes(answer.body))
        self.transport.close()


class _WebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, door: Door, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = _silent
        self.conn.logger = _silent
        self._door = door
        self._inside = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.taking = _Taking(cast("asyncio.Transport", transport))
        self._inside = self._door.admit(self._address) is None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._inside:
            self._inside = False
            self._door.let_go(self._address)

    @property
    def _address(self) -> str:
        return "" if self.client is None else self.client[0]
