"""Fetching on a native connection: frames as they are stored, not decoded here.

A fetch waits until the connection has room, and an answer is bounded: so what fetches
cost in memory, and how long one keeps all others waiting, does not depend on how many
were asked for, or how much.
"""

from __future__ import annotations

from collections import deque

from penstock.access.grants import OPEN
from penstock.broker.broker import Broker
from penstock.errors import (
    InvalidOption,
    LimitReached,
    OffsetOutOfRange,
    PenstockError,
)
from penstock.gateway.native_pub import problem
from penstock.gateway.options import NativeOptions
from penstock.wire.native import Fetch, Fetched, encode


class Fetcher:
    """Questions of one connection that wait to be answered."""

    __slots__ = ("_broker", "_options", "_waiting", "grants")

    def __init__(self, broker: Broker, options: NativeOptions) -> None:
        self.grants = OPEN
        self._broker = broker
        self._options = options
        self._waiting: deque[Fetch] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, message: Fetch) -> None:
        """Have a question answered; raises NotAllowed, LimitReached."""
        self.grants.check_read(message.topic)
        limit = self._options.max_fetches
        if len(self._waiting) >= limit:
            raise LimitReached("fetches that wait", limit, "max_fetches")
        self._waiting.append(message)

    def take(self) -> bytes | None:
        """The next answer; None if nothing was asked."""
        if not self._waiting:
            return None
        message = self._waiting.popleft()
        try:
            return encode(self._fetched(message))
        except PenstockError as error:
            return problem(message.seq, error)

    def _fetched(self, message: Fetch) -> Fetched:
        offset, end = message.offset, message.end
        topic = self._broker.log.topic(message.topic)
        start, stop = topic.start_offset, topic.end_offset
        if not start <= offset <= stop:
            raise OffsetOutOfRange(topic.name, offset, start, stop)
        if end < offset:
            raise InvalidOption("end", end, f"at least the offset, {offset}")
        most = min(max(message.max_bytes, 1), self._options.max_fetch_bytes)
        batches = topic.whole_batches(offset, most, end) if offset < end else []
        reached = batches[-1].header.end_offset if batches else stop
        frames = [one.frame() for one in batches]
        return Fetched(message.seq, frames, min(reached, end), start, stop)
