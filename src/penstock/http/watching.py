"""Whether the client of a stream is still there, and whether it may go on.

Two tasks a stream, none a message: one waits for the client to go, one for the server
or the login to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.types import Receive, Send

from penstock.http.notifier import Notifier
from penstock.http.opened import Guest


class PeerWatch:
    """What is known of the other side of a stream."""

    __slots__ = ("_notifier", "_guest", "_notified", "gone")

    def __init__(self, guest: Guest, notifier: Notifier | None) -> None:
        self.gone = False
        """Whether the client is not there any more, or does not read."""
        self._guest = guest
        self._notifier = notifier
        self._notified = asyncio.Event()

    @property
    def over(self) -> bool:
        """Whether there is no reason to go on."""
        return self.gone or self._guest.over

    async def write(self, send: Send, data: bytes, idle_s: float) -> None:
        """Send a piece of a body; who takes nothing for so long counts as gone."""
        message = {"type": "http.response.body", "body": data, "more_body": True}
        try:
            async with asyncio.timeout(idle_s):
                await send(message)
        except TimeoutError:
            self.gone = True

    async def pause(self, seconds: float) -> None:
        """Let others have a turn, or more; not longer than there is a reason to."""
        if not seconds:
            await asyncio.sleep(0)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()

    def notify(self) -> None:
        """It may be over."""
        self._notified.set()
        if self._notifier is not None:
            self._notifier.notify()


@asynccontextmanager
async def watched(
    receive: Receive, guest: Guest, notifier: Notifier | None = None
) -> AsyncIterator[PeerWatch]:
    """Watch while the block runs, and ring when it may be over."""
    watch = PeerWatch(guest, notifier)
    tasks = [
        asyncio.create_task(_until_gone(receive, watch)),
        asyncio.create_task(_until_ended(guest, watch)),
    ]
    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()


async def _until_gone(receive: Receive, watch: PeerWatch) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    watch.gone = True
    watch.notify()


async def _until_ended(guest: Guest, watch: PeerWatch) -> None:
    await guest.ended.wait()
    watch.notify()
