"""Lines that wait: for a login, or for a turn of all other connections.

A topic that is made is work on disk, and one read has room for many thousands of lines
that each make one. After some of them the rest waits for the connection's next turn.
"""

from __future__ import annotations

from penstock.gateway.gateway import Gateway

# Topics that one turn of a connection makes: some milliseconds for all others.
NEW_TOPICS = 100


class HeldLines(Gateway):
    """A gateway of lines that carries them out in ``_lines``."""

    _held: list[bytes]

    @property
    def busy(self) -> bool:
        return bool(self._held) and self.login is None and not self.closing

    def go_on(self, now_s: float) -> None:
        held, self._held = self._held, []
        self._lines(held, now_s)

    def _lines(self, lines: list[bytes], now_s: float) -> None:
        """Carry out lines, up to those that have to be held."""
        raise NotImplementedError
