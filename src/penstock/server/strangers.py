"""Connections that are not known yet: in a handshake, or before they say who they are.

There are so many of them at most, over all ports. When one more comes, the one that is
here longest goes, if it had its time; if all are new, those at the door wait in the
backlog. So a crowd costs little and keeps no client out for long, whether it is silent
or asks what any client may ask, and a storm of honest clients is slowed only.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections.abc import Callable

logger = logging.getLogger(__name__)

# A crowd has a line of the log so often.
SAY_S = 60.0


class Strangers:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, most: int, patience_s: float
    ) -> None:
        self._loop = loop
        self._most = most
        self._patience_s = patience_s
        self._came = 0
        """How many there were so far."""
        self._waiting: list[ConnectionSlot] = []
        """The longest first; a place comes back to where it was."""
        self._doors: dict[Callable[[], None], None] = {}
        """What opens those that are shut."""
        self._timer: asyncio.TimerHandle | None = None
        self._cut_off = 0
        self._shut = False
        """Whether a door was, since that was said."""
        self._say_at_s = 0.0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self._most

    def keep_out(self, open_door: Callable[[], None]) -> bool:
        """Whether no peer may come in; then the door is opened when that may be."""
        if not self.full:
            return False
        late_s = self._late_s()
        if late_s >= 0:
            return False
        self._shut = True
        self._doors[open_door] = None
        if self._timer is None:
            self._timer = self._loop.call_later(-late_s, self._open)
        return True

    def add(self, place: ConnectionSlot) -> None:
        """Nothing, if it is here; its time counts from when it first was."""
        if not place.number:
            self._came += 1
            place.number, place.since_s = self._came, self._loop.time()
        if self._at(place) is not None:
            return
        insort(self._waiting, place, key=_number)
        while len(self._waiting) > self._most and self._late_s() >= 0:
            self._cut_off += 1
            self._waiting.pop(0).abort()

    def remove(self, place: ConnectionSlot) -> None:
        """Nothing, if it is not here."""
        at = self._at(place)
        if at is None:
            return
        del self._waiting[at]
        if self._doors and not self.full:
            self._open()

    def tick(self) -> None:
        """Say how it was, now and then; called every second."""
        now_s = self._loop.time()
        if now_s < self._say_at_s or not (self._cut_off or self._shut):
            return
        logger.warning(
            "more than %d connections (server.max_strangers) have not said who they "
            "are: others wait, and %d were cut off",
            self._most,
            self._cut_off,
            extra={"action": "strangers_crowded", "count": self._cut_off},
        )
        self._cut_off, self._shut = 0, False
        self._say_at_s = now_s + SAY_S

    def close(self) -> None:
        """Open no door any more."""
        self._doors.clear()
        self._open()

    def _late_s(self) -> float:
        """How much longer than it may the longest has waited; negative if not yet."""
        since_s = self._waiting[0].since_s
        return self._loop.time() - since_s - self._patience_s

    def _at(self, place: ConnectionSlot) -> int | None:
        """Where it is, if it is here."""
        at = bisect_left(self._waiting, place.number, key=_number)
        here = at < len(self._waiting) and self._waiting[at] is place
        return at if here else None

    def _open(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        doors, self._doors = self._doors, {}
        for open_door in doors:
            open_door()


class ConnectionSlot:
    """One connection's place: among all, and among strangers while it is one."""

    __slots__ = ("_abort", "_give_back", "_strangers", "number", "since_s")

    def __init__(
        self,
        give_back: Callable[[], None] | None = None,
        strangers: Strangers | None = None,
    ) -> None:
        """Without ``strangers`` it is never one of them."""
        self._give_back = give_back
        self._strangers = strangers
        self._abort: Callable[[], object] | None = None
        self.number = 0
        """In the order in which strangers came; 0 of who was none yet."""
        self.since_s = 0.0
        """When that was."""

    @property
    def stranger(self) -> bool:
        """Whether it is not known; also while it waits for us."""
        return self._strangers is not None

    def ends_by(self, abort: Callable[[], object]) -> None:
        """What ends the connection at once, until it is gone."""
        if self._give_back is not None:
            self._abort = abort

    def waits(self) -> None:
        """It is for the peer to do something now: to say who it is, or to read."""
        if self._strangers is not None:
            self._strangers.add(self)

    def excused(self) -> None:
        """It has said something, and waits for us now."""
        if self._strangers is not None:
            self._strangers.remove(self)

    def known(self) -> None:
        """It is no stranger any more."""
        strangers, self._strangers = self._strangers, None
        if strangers is not None:
            strangers.remove(self)

    def leave(self) -> None:
        """The connection is gone; nothing, if that was said before."""
        give_back, self._give_back = self._give_back, None
        self._abort = None  # it refers to the connection, as that does to this
        self.known()
        if give_back is not None:
            give_back()

    def abort(self) -> None:
        if self._abort is not None:
            self._abort()


def _number(place: ConnectionSlot) -> int:
    return place.number


NO_PLACE = ConnectionSlot()
"""Of a connection that is not counted."""
