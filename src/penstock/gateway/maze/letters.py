"""Dead letters of the maze; they wait where the log is behind, within a bound."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from penstock.errors import Backlogged

GATEWAY = "maze"
# For as long as it takes a server to stop reading: a few large receives.
MAX_WAITING_BYTES = 8 << 20


class DeadLetterBox(Protocol):
    def dead_letter(self, *, gateway: str, reason: str, raw: bytes) -> None: ...


class MazeLetters:
    def __init__(self, box: DeadLetterBox) -> None:
        self._box = box
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0

    def __len__(self) -> int:
        """How many wait for the log."""
        return len(self._waiting)

    def keep(self, reason: str, raw: bytes) -> None:
        """Store a line that cannot be handled, now or by a later ``flush``.

        Raises Backlogged when too much waits already.
        """
        self._waiting.append((reason, raw))
        self._waiting_bytes += len(raw)
        self.flush()

    def flush(self) -> None:
        """Store what waits, as far as the log takes it."""
        while self._waiting:
            reason, raw = self._waiting[0]
            try:
                self._box.dead_letter(gateway=GATEWAY, reason=reason, raw=raw)
            except Backlogged:
                if self._waiting_bytes > MAX_WAITING_BYTES:
                    raise
                return
            self._waiting.popleft()
            self._waiting_bytes -= len(raw)
