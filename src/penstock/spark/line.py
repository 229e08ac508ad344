"""A line to the broker that outlives it: what is asked is asked again after a restart.

Only for what may be said twice: staging a piece, committing an epoch, publishing with
dedup ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TypeVar

from penstock.client import Client, connect
from penstock.errors import ConnectionLost, NotRunning, ServerRefused
from penstock.spark.options import Connection

T = TypeVar("T")

# Who published it, unless somebody logs in.
NAME = "spark"
# Between two tries; a restart takes longer.
PAUSE_S = 0.2
# Errors of a server that will go on by itself.
BUSY = ("Backlogged",)


class Line:
    """Opened when it is first needed; close it, or use it as a context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._client: Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def say(self, do: Callable[[Client], T]) -> T:
        """The result of ``do``, tried again while the broker is away or busy.

        Raises NotRunning, ConnectionLost, ServerRefused after ``retry_s``.
        """
        deadline_s = time.monotonic() + self._connection.retry_s
        while True:
            try:
                return do(self._opened())
            except (ConnectionLost, NotRunning):
                self.close()
                if time.monotonic() >= deadline_s:
                    raise
            except ServerRefused as error:
                if error.error not in BUSY or time.monotonic() >= deadline_s:
                    raise
            time.sleep(PAUSE_S)

    def _opened(self) -> Client:
        if self._client is None:
            self._client = self._open()
        return self._client

    def _open(self) -> Client:
        where = self._connection
        away: NotRunning | None = None
        for address in where.servers or (where.path or "",):
            try:
                return connect(
                    address, user=where.user, password=where.secret(), name=NAME
                )
            except NotRunning as error:
                away = error
        assert away is not None, "there is one address at least"
        raise away
