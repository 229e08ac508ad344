"""Streams that are open: how many there may be, and that they end in time.

They end with the server, and with the login that opened them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.access.account import Account
from penstock.errors import LimitReached, LoginRefused

Still = Callable[[], bool]


class Guest:
    """A client with something open. ``ended`` is set if there is no reason to go on."""

    __slots__ = ("ended", "revoked", "still")

    def __init__(self, still: Still) -> None:
        self.still = still
        self.ended = asyncio.Event()
        self.revoked: LoginRefused | None = None
        """Why it ended before the server does."""

    @property
    def over(self) -> bool:
        return self.ended.is_set()


class OpenStreams:
    """Counts streams, sockets, long polls and questions in SQL.

        with house.opened.one(call.still, call.account) as guest:
            while not guest.over: ...

    When the server drains, a stream says goodbye, and a long poll answers with
    what it has. ``check`` is called every second: no stream needs a timer of its own.
    """

    def __init__(self, limit: int) -> None:
        self.ending = False
        """Whether the server ends."""
        self._limit = limit
        self._guests: set[Guest] = set()

    @property
    def count(self) -> int:
        return len(self._guests)

    @contextmanager
    def one(
        self, still: Still = lambda: True, account: Account | None = None
    ) -> Iterator[Guest]:
        """Count one in while the block runs; raises LimitReached.

        ``still``: whether it may go on, as far as the login is concerned. It is one of
        the connections of the user that ``account`` is of.
        """
        if self.count >= self._limit:
            raise LimitReached("open streams", self._limit, "http.max_streams")
        if account is not None:
            account.enter()
        guest = Guest(still)
        if self.ending:
            guest.ended.set()
        self._guests.add(guest)
        try:
            yield guest
        finally:
            self._guests.discard(guest)
            if account is not None:
                account.leave()

    def end(self) -> None:
        """The server ends, and all of them with it."""
        self.ending = True
        for guest in self._guests:
            guest.ended.set()

    def check(self) -> None:
        """End those whose login counts no more."""
        for guest in self._guests:
            if not guest.over and not guest.still():
                guest.revoked = LoginRefused("the login does not count any more")
                guest.ended.set()
