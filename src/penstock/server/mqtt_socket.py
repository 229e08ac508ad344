"""MQTT over WebSocket: ``/mqtt`` on the HTTP port.

The bytes of a WebSocket take the same way as those of a socket: a connection is told of
them, and what it writes goes back in binary messages. How packets fall into messages
means nothing (MQTT-6.0.0-2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.errors import PenstockError
from penstock.http.guard import PEER_CERTIFICATE, PLACE
from penstock.server.connection import Connection, PeerCertificate
from penstock.server.strangers import NO_PLACE
from penstock.server.websocket import UNDERNEATH

PATH = "/mqtt"
# MQTT-6.0.0-3; the second is of MQTT 3.1.
SUBPROTOCOLS = ("mqtt", "mqttv3.1")
# RFC 6455: data of a kind that cannot be accepted; a policy is violated.
NOT_BINARY, REFUSED, DONE = 1003, 1008, 1000


class Underneath(Protocol):
    """The WebSocket itself."""

    def hold(self) -> None:
        """Read nothing for the time being."""

    def go_on(self) -> None: ...

    def let_in(self) -> None:
        """The peer has logged in: it may send more at a time."""

    def cut_off(self) -> None: ...


class MqttSockets:
    """An application in front of another one, which gets all that is not ours."""

    def __init__(
        self,
        app: ASGIApp,
        check_origin: Callable[[Headers], None],
        make: Callable[[], Connection],
    ) -> None:
        self._app = app
        self._check_origin = check_origin
        self._make = make

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and scope["path"] == PATH:
            await self._serve(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        spoken = [one for one in scope["subprotocols"] if one in SUBPROTOCOLS]
        try:
            # A page of another site must not talk to a broker on this machine.
            self._check_origin(Headers(scope=scope))
        except PenstockError:
            spoken = []
        if not spoken:
            await send({"type": "websocket.close", "code": REFUSED})
            return
        await send({"type": "websocket.accept", "subprotocol": spoken[0]})
        connection = self._make()
        state = scope.get("state", {})
        shown = state.get(PEER_CERTIFICATE)
        connection.place = state.get(PLACE, NO_PLACE)
        # Taken out: what refers to itself is free only when the collector looks for it.
        underneath = scope.get("extensions", {}).pop(UNDERNEATH, None)
        transport = SocketTransport(connection, scope.get("client"), underneath, shown)
        connection.connection_made(transport)
        sending = transport.sending = asyncio.ensure_future(transport.run(send))
        hearing = asyncio.ensure_future(transport.hear(receive))
        try:
            await asyncio.wait([sending, hearing], return_when="FIRST_COMPLETED")
        finally:
            for task in (hearing, sending):
                task.cancel()
                with suppress(asyncio.CancelledError, OSError, RuntimeError):
                    await task
            connection.connection_lost(None)


class SocketTransport(asyncio.Transport):
    """What a connection writes to, over a WebSocket."""

    def __init__(
        self,
        connection: Connection,
        client: Any,
        underneath: Underneath | None = None,
        peercert: PeerCertificate = None,
    ) -> None:
        peername = tuple(client) if client else None
        super().__init__({"peername": peername, "peercert": peercert})
        self.sending: asyncio.Future[None] | None = None
        """What sends, as long as it does."""
        self._connection = connection
        self._underneath = underneath
        self._out: list[bytes] = []
        self._size = 0
        self._most = 1 << 20
        self._full = False
        self._closing = False
        self._code = DONE
        self._wanted = asyncio.Event()
        self._reading = asyncio.Event()
        self._reading.set()

    async def run(self, send: Send) -> None:
        """Send what is written, until it is closed."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            data, self._out, self._size = b"".join(self._out), [], 0
            if data:
                await send({"type": "websocket.send", "bytes": data})
            if self._full:
                self._full = False
                self._connection.resume_writing()
            if self._closing and not self._out:
                code = REFUSED if self._connection.revoked else self._code
                await send({"type": "websocket.close", "code": code})
                return

    async def hear(self, receive: Receive) -> None:
        """Take in what comes, while the connection wants it; return at the end."""
        while True:
            await self._reading.wait()
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            data: bytes | None = message.get("bytes")
            if data is not None:
                self._connection.take_in(data)
            else:  # MQTT-6.0.0-1
                self._code = NOT_BINARY
                self.close()
                self.pause_reading()

    # As connections know it

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._out.append(bytes(data))
        self._size += len(data)
        self._wanted.set()
        if self._size > self._most and not self._full:
            self._full = True
            self._connection.pause_writing()

    def set_write_buffer_limits(
        self, high: int | None = None, low: int | None = None
    ) -> None:
        self._most = high or self._most

    def get_write_buffer_size(self) -> int:
        return self._size

    def let_in(self) -> None:
        """The peer has logged in."""
        if self._underneath is not None:
            self._underneath.let_in()

    def pause_reading(self) -> None:
        self._reading.clear()
        if self._underneath is not None:
            self._underneath.hold()

    def resume_reading(self) -> None:
        self._reading.set()
        if self._underneath is not None:
            self._underneath.go_on()

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        self._wanted.set()

    def abort(self) -> None:
        self._out.clear()
        self._closing = True
        if self._underneath is not None:
            self._underneath.cut_off()
        if self.sending is not None:  # perhaps the peer does not read
            self.sending.cancel()
