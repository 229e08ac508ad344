"""The event source: one at a time, sends events and gets nothing back."""

from __future__ import annotations

import logging

from penstock.gateway.gateway import Gateway
from penstock.gateway.maze.hub import MazeHub
from penstock.wire.lines import TOO_LONG, LineSplitter

logger = logging.getLogger(__name__)


class MazeSource(Gateway):
    """The gateway of one connection on the event port."""

    def __init__(self, hub: MazeHub) -> None:
        self.closing = False
        self._hub = hub
        self._splitter = LineSplitter(hub.options.max_line_bytes)

    @property
    def arrivals(self) -> int:
        """How many clients have connected so far, of all."""
        return self._hub.arrivals

    @property
    def backlogged(self) -> bool:
        """Whether what it sent waits for the log: a reason to read no more for now."""
        return self._hub.backlogged and not self.closing

    def catch_up(self, now_s: float) -> None:
        """Have what waits stored, as far as the log takes it by now."""
        self._hub.catch_up(now_s)

    def connected(self, now_s: float) -> None:
        if not self._hub.source_connected(self):
            self._hub.broker.throttle.log(
                logger,
                logging.WARNING,
                "maze source refused: another one is connected",
                extra={"action": "maze_source_refused"},
            )
            self.closing = True

    def receive(self, data: bytes, now_s: float) -> None:
        if self.closing:
            return
        lines = self._splitter.feed(data)
        if lines:
            self._hub.receive(lines, now_s)

    def eof(self, now_s: float) -> None:
        """A last line without its end counts as a line."""
        if self.closing:
            return
        if self._splitter.rest:
            self._hub.receive([self._splitter.rest], now_s)
        elif self._splitter.overlong:
            self._hub.receive([TOO_LONG], now_s)
        self._end(now_s)

    def output(self, now_s: float, room: int) -> list[bytes]:
        return []

    def disconnected(self, now_s: float) -> None:
        """Broken off: what came of a last line may be a part of a number."""
        if self.closing:
            return
        if self._splitter.rest:
            reason = "the connection broke within the line"
            self._hub.letters.keep(reason, self._splitter.rest)
        self._end(now_s)

    def _end(self, now_s: float) -> None:
        self.closing = True
        self._hub.source_left(now_s)
