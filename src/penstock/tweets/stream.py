"""One stream of tweets to one reader: what is due, many messages in a write.

The reader sets the pace where it is the slower one: nothing is made before the bytes
in front of it are on their way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from penstock.tweets.generator import Generator
from penstock.tweets.pace import MessagePace
from penstock.wire.sse import numbered
from penstock.wire.sse.rendering import KEEP_ALIVE

# Between looks at what is due.
TICK_S = 0.05
# In one write: a few milliseconds of work, so that other readers get their turn.
MAX_BATCH = 200
# Silence for longer looks like a lost connection.
KEEP_ALIVE_S = 15.0


@dataclass(slots=True)
class StreamTally:
    """What a stream has done so far."""

    events: int = 0
    clients: int = 0
    last: int = 0
    """The highest number of a message that was sent, by this server or before it was
    started: a reader that goes on behind a message has got that one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    generator: Generator
    pace: MessagePace
    count: int | None
    """The number of the last message; None if there is no last one."""
    stopping: Callable[[], bool]
    tally: StreamTally

    def is_over(self, first: int) -> bool:
        """Whether there is no message ``first``, and never will be."""
        return self.count is not None and first > self.count

    def goes_on(self, first: int) -> None:
        """A reader has got all messages in front of ``first``."""
        last = first - 1 if self.count is None else min(first - 1, self.count)
        self.tally.last = max(self.tally.last, last)

    async def frames(
        self, first: int, clock: Callable[[], float]
    ) -> AsyncIterator[bytes]:
        """Messages from number ``first`` on, until they end or the server does."""
        self.tally.clients += 1
        # A reader that begins far ahead has not got what is in front of that.
        joins = first <= self.tally.last + 1
        try:
            async for data in self._paced(first, clock, joins=joins):
                yield data
        finally:
            self.tally.clients -= 1

    async def _paced(
        self, first: int, clock: Callable[[], float], *, joins: bool
    ) -> AsyncIterator[bytes]:
        begin_s = sent_s = clock()
        next_ = first
        yield KEEP_ALIVE  # so that the reader knows that it is connected
        while not self.is_over(next_) and not self.stopping():
            now_s = clock()
            count = self._due(next_ - first, next_, begin_s, now_s)
            if count > 0:
                if joins:
                    self.tally.last = max(self.tally.last, next_ + count - 1)
                yield numbered(self.generator.batch(next_, count), next_)
                next_ += count
                sent_s = now_s
                self.tally.events += count
            elif now_s - sent_s >= KEEP_ALIVE_S:
                yield KEEP_ALIVE
                sent_s = now_s
            await asyncio.sleep(0 if count == MAX_BATCH else TICK_S)

    def _due(self, done: int, next_: int, begin_s: float, now_s: float) -> int:
        count = min(self.pace.due(begin_s, now_s) - done, MAX_BATCH)
        if self.count is None:
            return count
        return min(count, self.count - next_ + 1)
