"""The connection of the maze's event source, which lets clients register first.

The protocol has no answer to a client's id, so a client may have sent it before the
source sent an event, and the server may see both at the same time. Whatever the source
sent is therefore held for a few turns of the loop, and for more as long as clients
arrive in them: each turn accepts a connection that waits and reads ids that have come.

While the log does not take what came before, nothing more is read; with each turn of
the engine that finds room it is tried again.
"""

from __future__ import annotations

from penstock.gateway.maze import MazeSource
from penstock.server.connection import Connection

# Turns of the loop from a connection in the backlog to its id: accepted, begun, made,
# read, and some that a loop may take in between.
TURNS = 8
# Clients that keep arriving must not hold up the events for ever.
MAX_TURNS = 10_000


class MazeSourceConnection(Connection):
    def arrived(self, data: bytes) -> None:
        self._held.append(data)
        self._stop_reading()
        self._turn(TURNS, MAX_TURNS, self._arrivals())

    def _turn(self, left: int, most: int, seen: int) -> None:
        arrivals = self._arrivals()
        if arrivals != seen:
            left = TURNS
        if left and most:
            self.engine.loop.call_soon(self._turn, left - 1, most - 1, arrivals)
        else:
            self.resume()

    def resume(self) -> None:
        if self._source.backlogged and not super()._blocked():
            self._guarded(lambda: self._source.catch_up(self.engine.now_s()))
        super().resume()

    def _blocked(self) -> bool:
        return super()._blocked() or self._source.backlogged

    def _hold_up(self) -> None:
        super()._hold_up()
        if self._source.backlogged:
            self.engine.pause(self)

    def _arrivals(self) -> int:
        return self._source.arrivals

    @property
    def _source(self) -> MazeSource:
        assert isinstance(self.gateway, MazeSource)
        return self.gateway
