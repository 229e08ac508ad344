"""Streams that are open: how many there may be, and that they end with the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import LimitReached


class Opened:
    """Counts streams, sockets and long polls.

        with house.opened.one():
            while not house.opened.ending: ...

    ``ended`` is set when the server drains: whoever streams says goodbye, and a long
    poll answers with what it has.
    """

    def __init__(self, limit: int) -> None:
        self.count = 0
        self.ended = asyncio.Event()
        self._limit = limit

    @property
    def ending(self) -> bool:
        return self.ended.is_set()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Count one in while the block runs; raises LimitReached."""
        if self.count >= self._limit:
            raise LimitReached("open streams", self._limit, "http.max_streams")
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
