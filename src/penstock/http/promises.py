"""What a request waits for: that a group is on disk, or that there is room.

A request does something to the broker, notes the group that holds it, and waits. All
requests of a group share one future: nothing is kept per event.
"""

from __future__ import annotations

from typing import Protocol

from penstock.delivery.consumer import Member
from penstock.errors import InDoubt, WriteFailed


class Promises(Protocol):
    """Kept by the engine of a server; see server/promises.py."""

    @property
    def members(self) -> dict[object, Member]:
        """Whom the engine calls, by the outlet that the broker wakes."""

    async def kept(self, group: int) -> None:
        """Return when the group is on disk; raises WriteFailed if it never will be.

        For what is not done if it cannot be written: publishing, orders at the desk.
        """

    async def kept_at_last(self, group: int) -> None:
        """Return when the group, or one that says the same again, is on disk.

        For what the broker writes until it succeeds: settling, seeking, forgetting.
        """

    async def room(self) -> None:
        """Return when there is room for more: whoever publishes asks first."""

    def kick(self) -> None:
        """Have the engine turn: something was done that others may wait for."""

    def now_s(self) -> float:
        """Seconds since the epoch, by the clock of the broker."""

    def trouble(self) -> InDoubt | WriteFailed | None:
        """Why nothing can be promised at this moment, if nothing can."""
