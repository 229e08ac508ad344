"""A WebSocket: uvicorn's, within the limits of peers that are not known yet.

Nothing is read before the application has accepted it. Where peers log in inside (MQTT)
nothing is compressed, and reads are small until they have: a few bytes that unfold to
many would be there before the peer was asked who it is.

One that we close has a moment for its goodbye, and is cut off then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Final, cast
from urllib.parse import unquote

from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.frames import CloseCode
from websockets.http11 import Request

from penstock.server.connection import CLOSE_S, CUT_OFF_S, LOGIN_READ_BYTES
from penstock.server.reads import Reads
from penstock.server.strangers import NO_PLACE, ConnectionSlot
from penstock.server.taking import Taking

# What uvicorn has to say, our application has said already.
silent = logging.getLogger(f"{__name__}.uvicorn")
silent.setLevel(logging.CRITICAL + 1)

# Where the scope of a WebSocket has it, if peers log in inside.
UNDERNEATH: Final = "penstock.underneath"
# Of the largest frame, around its payload.
FRAME_BYTES = 14


class WebSocket(WebSocketsSansIOProtocol):
    def __init__(
        self,
        *args: Any,
        login_inside: Collection[str],
        login_bytes: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.logger = silent
        self.conn.logger = silent
        self.place: ConnectionSlot = NO_PLACE
        """Given back once the connection is gone."""
        self._login_inside = login_inside
        self._login_bytes = login_bytes
        self._unknown = False
        """Whether the peer has yet to log in."""
        self._held = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.taking = Taking(cast("asyncio.Transport", transport))

    def begin(self) -> None:
        """It is the transport's protocol now."""
        self.hold()
        if self._unknown:
            self.transport.set_protocol(_Measured(self, self._login_bytes))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.place.leave()
        # Be free without a collector: what parses refers to what it parses for.
        self.conn.parser.close()
        self.conn.parser_exc = self.conn.handshake_exc = None
        self.conn.reader.discard()
        self.frames.clear()

    def handle_connect(self, event: Request) -> None:
        # As the application sees it: /%6dqtt is /mqtt.
        self._unknown = unquote(event.path.partition("?")[0]) in self._login_inside
        if self._unknown:
            self.conn.available_extensions = []
        super().handle_connect(event)
        if self._unknown and self.response.status_code == 101:
            extensions = cast("dict[str, object]", self.scope["extensions"])
            extensions[UNDERNEATH] = self

    def handle_ping(self) -> None:
        pongs = b"".join(self.conn.data_to_send())
        # RFC 6455, 5.5.3: a peer that does not read need not be sent an answer to each.
        if self.writable.is_set():
            self.transport.write(pongs)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept":
            self.go_on()
        elif message["type"] == "websocket.close" and self.close_timer is not None:
            self._end_soon(message.get("code", CloseCode.NORMAL_CLOSURE))

    def _end_soon(self, code: int) -> None:
        """End without the peer's goodbye; uvicorn would wait for it for longer.

        A peer that was known may take its time with what it has yet to read, as long as
        it takes something, but not against a policy: perhaps its login counts no more.
        """
        assert self.close_timer is not None, "the goodbye was sent"
        self.close_timer.cancel()
        refused = code == CloseCode.POLICY_VIOLATION
        patient = not refused and not self.place.stranger
        end = self.transport.close if patient else self.transport.abort
        self.close_timer = self.loop.call_later(CUT_OFF_S if refused else CLOSE_S, end)

    # Called by who speaks MQTT

    def hold(self) -> None:
        """Read nothing for the time being."""
        if not self._held:
            self._held = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        if self._held:
            self._held = False
            if not self.read_paused:
                self.transport.resume_reading()

    def let_in(self) -> None:
        """The peer has logged in."""
        if self._unknown and not self.transport.is_closing():
            self._unknown = False
            self.transport.set_protocol(self)

    def cut_off(self) -> None:
        self.transport.abort()

    def refuse_large(self, limit: int) -> None:
        """More came than a peer may send that is not known."""
        text = f"more than {limit} bytes before the login"
        self.conn.fail(CloseCode.MESSAGE_TOO_BIG, text)
        self.handle_parser_exception()


class _Measured(Reads):
    """Reads for a WebSocket a little at a time, and up to a limit for one message."""

    def __init__(self, socket: WebSocket, limit: int) -> None:
        super().__init__(socket, memoryview(bytearray(LOGIN_READ_BYTES)))
        self._socket = socket
        self._limit = limit
        self._got = 0
        """Since the last message that has come to its end."""

    def buffer_updated(self, nbytes: int) -> None:
        super().buffer_updated(nbytes)
        self._got = 0 if self._socket.read_paused else self._got + nbytes
        if self._got > self._limit + FRAME_BYTES and not self._socket.close_sent:
            self._socket.refuse_large(self._limit)
