"""A client of the maze: sends its id, then only listens.

It gets no answer to its id. What it sends behind it is ignored; when it ends its side
it leaves. A client that comes again takes the place of its former connection, which
still gets what was meant for it and is closed. One that does not read is given up
when it has too much to take.
"""

from __future__ import annotations

import logging

from penstock.errors import RemoteProtocolError
from penstock.gateway.gateway import Gateway
from penstock.gateway.maze.hub import MazeHub
from penstock.wire.lines import TOO_LONG, LineSplitter
from penstock.wire.maze import parse_client_id

logger = logging.getLogger(__name__)

# An id is a number; any peer can open a connection and begin one.
MAX_ID_BYTES = 1 << 10


class MazeClient(Gateway):
    """The gateway of one connection on the client port."""

    def __init__(self, hub: MazeHub) -> None:
        self.closing = False
        self.settled = False
        self.lines: list[bytes] = []
        self._hub = hub
        self._id: int | None = None
        # None when the id line has come: nothing more is read.
        self._splitter: LineSplitter | None = None
        self._unsent = bytearray()

    def connected(self, now_s: float) -> None:
        limit = min(self._hub.options.max_line_bytes, MAX_ID_BYTES)
        self._splitter = LineSplitter(limit)
        self._hub.unregistered += 1
        self._hub.arrivals += 1

    def receive(self, data: bytes, now_s: float) -> None:
        if self._splitter is None:
            return
        lines = self._splitter.feed(data)
        if lines:
            self._identify(lines[0])
        elif self._splitter.overlong:
            self._identify(TOO_LONG)

    def eof(self, now_s: float) -> None:
        if self._splitter is not None and self._splitter.rest:
            self._identify(self._splitter.rest)
        self._leave()

    def output(self, now_s: float, room: int) -> list[bytes]:
        if not self._unsent or room <= 0:
            return []
        data = bytes(self._unsent[:room])
        del self._unsent[:room]
        return [data]

    def disconnected(self, now_s: float) -> None:
        self._leave()
        self._drop_unsent("has left")

    def gather(self) -> None:
        """Turn the lines into output, as much as a client may leave unread."""
        limit = self._hub.options.max_client_buffer_bytes
        self._unsent += b"".join(self.lines)
        self.lines.clear()
        if len(self._unsent) > limit:
            self._hub.broker.throttle.log(
                logger,
                logging.WARNING,
                "maze client %s does not read: more than %d bytes wait for it",
                self._id,
                limit,
                extra={"action": "maze_client_given_up", "client": self._id},
            )
            self._leave()
            self._drop_unsent("does not read")
        self._hub.broker.awake[self] = None

    def replaced(self) -> None:
        self._hub.broker.throttle.log(
            logger,
            logging.INFO,
            "maze client %s has connected again, its former connection is closed",
            self._id,
            extra={"action": "maze_client_replaced", "client": self._id},
        )
        self.closing = True
        self._hub.broker.awake[self] = None

    def _identify(self, line: bytes) -> None:
        limit = 0 if self._splitter is None else self._splitter.max_bytes
        self._end_waiting()
        if line == TOO_LONG:
            self._refuse(f"client id exceeds {limit} bytes", b"")
            return
        try:
            self._id = parse_client_id(line)
        except RemoteProtocolError as error:
            self._refuse(error.for_client, line)
        else:
            self.settled = True
            self._hub.router.join(self._id, self)

    def _refuse(self, reason: str, raw: bytes) -> None:
        self.closing = True
        self._hub.letters.keep(reason, raw)

    def _leave(self) -> None:
        self.closing = True
        self._end_waiting()
        if self._id is not None:
            self._hub.router.leave(self._id, self)

    def _end_waiting(self) -> None:
        if self._splitter is not None:
            self._splitter = None
            self._hub.unregistered -= 1

    def _drop_unsent(self, reason: str) -> None:
        if self._unsent and self._id is not None:
            # A part of the first line may have been sent: it did not arrive either.
            lines = bytes(self._unsent).splitlines(keepends=True)
            self._hub.router.missed(self._id, lines, reason)
            self._unsent.clear()
