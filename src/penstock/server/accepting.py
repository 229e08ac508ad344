"""Accepting connections: one way for all listeners, HTTP among them.

A connection has its place among the others from the moment it is accepted, before a
byte was read or a TLS handshake has begun, and a handshake has its time. So no peer is
here uncounted, and none for ever. Of those that are not known there are so many at
most, see strangers.py: the rest waits in the backlog.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from penstock.server.strangers import ConnectionSlot, Strangers

logger = logging.getLogger(__name__)

# Accepted in one turn of the loop, so that a crowd at the door does not keep those
# inside waiting.
AT_ONCE = 64
# Without descriptors the next attempt fails too; a peer that waits is in the backlog.
PAUSE_S = 1.0
# How often that is said, however long it lasts.
SAY_S = 60.0
# How long a peer may take to agree to the end of TLS, before it is cut off.
TLS_END_S = 2.0
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def no_tls() -> ssl.SSLContext | None:
    """For listeners that speak plainly."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """What is done with connections to one socket."""

    sock: socket.socket
    admit: Callable[[str], bytes | None]
    """Count a peer in, by its address; or the last word to one who may not come in."""
    leave: Callable[[str], None]
    """Count it out."""
    make: Callable[[ConnectionSlot], asyncio.BaseProtocol]
    tls: Callable[[], ssl.SSLContext | None] = no_tls
    """Asked for every connection: certificates may be others by then."""
    handshake_s: float = 30.0
    strangers: Strangers | None = None
    """Among whom peers are until they are known; None where all are known."""


class Acceptor:
    """Accepts at one socket until it is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, entrance: Entrance) -> None:
        self._loop = loop
        self._entrance = entrance
        self._entering: dict[asyncio.Task[None], ssl.SSLContext | None] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._say_at_s = 0.0
        self._listen()

    def close(self) -> None:
        """Accept no more, and give up on who is not inside yet."""
        if self._pause is not None:
            self._pause.cancel()
        if self._entrance.sock.fileno() >= 0:
            self._loop.remove_reader(self._entrance.sock)
            self._entrance.sock.close()
        for task, tls in self._entering.items():
            if tls is not None:  # others are inside with the next turn of the loop
                task.cancel()

    def _listen(self) -> None:
        self._pause = None
        if self._entrance.sock.fileno() >= 0:
            self._loop.add_reader(self._entrance.sock, self._accept)

    def _accept(self) -> None:
        strangers = self._entrance.strangers
        for _ in range(AT_ONCE):
            if strangers is not None and strangers.keep_out(self._listen):
                self._loop.remove_reader(self._entrance.sock)
                return
            try:
                sock, peer = self._entrance.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._rest(error)
                return
            sock.setblocking(False)
            self._admit(sock, peer[0] if isinstance(peer, tuple) else "")
            if strangers is not None and strangers.full:
                return  # the next one who leaves makes room at another port

    def _rest(self, error: OSError) -> None:
        """Wait for descriptors, which a peer that leaves gives back."""
        if error.errno not in _EXHAUSTED:
            raise error
        self._say(error)
        self._loop.remove_reader(self._entrance.sock)
        self._pause = self._loop.call_later(PAUSE_S, self._listen)

    def _say(self, error: OSError) -> None:
        if self._loop.time() < self._say_at_s:
            return
        self._say_at_s = self._loop.time() + SAY_S
        logger.error(
            "no connection is accepted for %g s at a time: %s",
            PAUSE_S,
            error.strerror,
            extra={"action": "accept_failed"},
        )

    def _admit(self, sock: socket.socket, address: str) -> None:
        tls = self._entrance.tls()
        last_word = self._entrance.admit(address)
        if last_word is not None:
            with sock, suppress(OSError):
                if tls is None:  # otherwise it could not be read
                    sock.send(last_word)
                sock.shutdown(socket.SHUT_WR)
            return
        leave = partial(self._entrance.leave, address)
        place = ConnectionSlot(leave, self._entrance.strangers)
        task = self._loop.create_task(self._enter(sock, place, tls))
        if tls is not None:
            place.ends_by(task.cancel)
        place.waits()
        self._entering[task] = tls
        task.add_done_callback(self._entering.pop)

    async def _enter(
        self, sock: socket.socket, place: ConnectionSlot, tls: ssl.SSLContext | None
    ) -> None:
        entrance = self._entrance
        try:
            transport, _ = await self._loop.connect_accepted_socket(
                lambda: entrance.make(place),
                sock,
                ssl=tls,
                ssl_handshake_timeout=entrance.handshake_s if tls else None,
                ssl_shutdown_timeout=TLS_END_S if tls else None,
            )
        except BaseException as error:
            place.leave()
            sock.close()
            if not isinstance(error, (OSError, asyncio.CancelledError)):
                raise  # a mistake of ours
        else:
            place.ends_by(transport.abort)
            if tls is not None and transport.is_closing():
                place.leave()  # gone within the handshake: nothing else is told
