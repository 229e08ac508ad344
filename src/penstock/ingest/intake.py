"""Events between the one who reads them and the one who stores them.

Bounded: who reads waits while there is no room, and does not read on. Who stores takes
a batch when it is full, or when its first event has waited long enough.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from penstock.ingest.options import LINGER_S
from penstock.wire.sse import ServerSentEvent

# Of one batch.
MAX_EVENTS = 1000
MAX_BYTES = 1 << 20
# What may wait: a few batches, so that reading goes on while one is stored.
BATCHES = 4


class StreamBuffer:
    """Has one reader and one storer, both in the same loop."""

    def __init__(
        self,
        *,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
        linger_s: float = LINGER_S,
    ) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._linger_s = linger_s
        self._events: deque[ServerSentEvent] = deque()
        self._bytes = 0
        self._ended = False
        self._first_s = 0.0
        self._changed = asyncio.Event()
        """More has come, or nothing will."""
        self._room = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    async def put(self, events: Sequence[ServerSentEvent]) -> None:
        """Add events, and wait until there is room for more."""
        if not events:
            return
        first = not self._events
        if first:
            self._first_s = _now_s()
        self._events.extend(events)
        self._bytes += sum([len(event.data) for event in events])
        # In between the storing task need not know: it waits for the first event, and
        # then for a full batch or the time.
        if first or self._fills(1):
            self._changed.set()
        while self._fills(BATCHES):
            self._room.clear()
            await self._room.wait()

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        self._changed.set()

    async def take(self) -> list[ServerSentEvent]:
        """The next batch; empty when there will be none."""
        while not self._events and not self._ended:
            await self._change(None)
        deadline_s = self._first_s + self._linger_s
        while not self._fills(1) and not self._ended:
            left_s = deadline_s - _now_s()
            if left_s <= 0:
                break
            await self._change(left_s)
        return self._cut()

    async def _change(self, timeout_s: float | None) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()

    def _fills(self, batches: int) -> bool:
        return (
            len(self._events) >= batches * self._max_events
            or self._bytes >= batches * self._max_bytes
        )

    def _cut(self) -> list[ServerSentEvent]:
        """As many as a batch may have; one that is larger is a batch of its own."""
        if len(self._events) <= self._max_events and self._bytes <= self._max_bytes:
            batch, size = list(self._events), self._bytes
            self._events.clear()
        else:
            batch, size = self._first()
        self._bytes -= size
        self._first_s = _now_s()
        self._room.set()
        return batch

    def _first(self) -> tuple[list[ServerSentEvent], int]:
        """The events of one of several batches, and their bytes."""
        batch: list[ServerSentEvent] = []
        size = 0
        while self._events and len(batch) < self._max_events:
            length = len(self._events[0].data)
            if batch and size + length > self._max_bytes:
                break
            batch.append(self._events.popleft())
            size += length
        return batch, size


def _now_s() -> float:
    return asyncio.get_running_loop().time()
