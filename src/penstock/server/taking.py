"""Whether a peer takes what it is sent, and whether it has sent what was not read."""

from __future__ import annotations

import asyncio
import fcntl
import select
import sys
import termios


class Taking:
    """Bytes that wait here and in the system, looked at now and then.

    They become others while the peer reads, however slowly.
    """

    __slots__ = ("_left", "_since_s", "_transport", "more")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._left: tuple[int, int] | None = None
        self._since_s = 0.0
        """Since when they are the same."""
        self.more = False
        """Whether more is held back until what the system has is taken."""

    def stuck(self, now_s: float, write_s: float) -> bool:
        """Whether the peer has taken nothing for longer than that."""
        waiting = self._transport.get_write_buffer_size()
        left = None
        if waiting or self.more:
            left = waiting, _queued(self._transport, termios.TIOCOUTQ)
        if left is None or left != self._left:
            self._left, self._since_s = left, now_s
            return False
        return now_s - self._since_s > write_s

    def untaken(self) -> int:
        """How many bytes wait, here and in the system."""
        waiting = self._transport.get_write_buffer_size()
        return waiting + _queued(self._transport, termios.TIOCOUTQ)

    def hung_up(self) -> bool:
        """Whether the peer is gone for good; not noticed while nothing is read."""
        sock = self._transport.get_extra_info("socket")
        try:
            looking = select.poll()
            looking.register(sock.fileno(), 0)
            return bool(looking.poll(0))
        except (AttributeError, OSError, ValueError):  # none, or it is closed already
            return True

    def check(self, now_s: float, write_s: float) -> None:
        """Cut the peer off if it has taken nothing for so long."""
        if self.stuck(now_s, write_s):
            self._transport.abort()


def has_sent(transport: asyncio.Transport) -> bool:
    """Whether something of the peer may wait to be read.

    What TLS or a WebSocket has taken in already cannot be seen: so perhaps.
    """
    if transport.get_extra_info("ssl_object") is not None:
        return True
    if transport.get_extra_info("socket") is None:
        return True
    return _queued(transport, termios.FIONREAD) > 0


def _queued(transport: asyncio.Transport, queue: int) -> int:
    """Bytes that the system has: for the peer's system, or for us."""
    sock = transport.get_extra_info("socket")
    try:
        found = fcntl.ioctl(sock.fileno(), queue, bytes(4))
    except (AttributeError, OSError, ValueError):  # none, or it is closed already
        return 0
    return int.from_bytes(found, sys.byteorder)
