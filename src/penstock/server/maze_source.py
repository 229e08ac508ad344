"""The connection of the maze's event source, which lets clients register first.

The protocol has no answer to a client's id, so a client may have sent it before the
source sent an event, and the server may see both at the same time. Whatever the source
sent is therefore held for a few turns of the loop, in which every connection that is
waiting is accepted and every id that has arrived is read.
"""

from __future__ import annotations

from penstock.server.connection import Connection

# Turns of the loop from a connection in the backlog to its id: accepted, made, read.
TURNS = 4


class MazeSourceConnection(Connection):
    def buffer_updated(self, nbytes: int) -> None:
        self._held.append(bytes(self._buffer[:nbytes]))
        self._stop_reading()
        self._turn(TURNS)

    def _turn(self, left: int) -> None:
        if left:
            self.engine.loop.call_soon(self._turn, left - 1)
        else:
            self.resume()
