"""A line to a server that outlives it: what is asked is asked again after a restart.

Only for what may be said twice: staging a piece, committing an epoch, publishing with
dedup ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TypeVar

from penstock.client.blocking import Client
from penstock.errors import (
    Backlogged,
    ConnectionLost,
    NotRunning,
    RemoteProtocolError,
    ServerRefused,
)

T = TypeVar("T")

# Between two tries; a restart takes longer.
PAUSE_S = 0.2


class LastingConnection:
    """Opened when it is first needed; close it, or use it as a context manager."""

    def __init__(self, opener: Callable[[], Client], retry_s: float) -> None:
        self._opener = opener
        self._retry_s = retry_s
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
        """The result of ``do``, tried again while the server is away or busy.

        A connection that the server has ended is not used again: after what it refused,
        the next thing is said on a new one. Raises NotRunning, ConnectionLost,
        ServerRefused after ``retry_s``; RemoteProtocolError.
        """
        deadline_s = time.monotonic() + self._retry_s
        while True:
            try:
                if self._client is None:
                    self._client = self._opener()
                return do(self._client)
            except (ConnectionLost, NotRunning):
                self.close()
                if time.monotonic() >= deadline_s:
                    raise
            except RemoteProtocolError:
                self.close()
                raise
            except ServerRefused as error:
                if self._client is not None and self._client.is_ended:
                    self.close()
                if not isinstance(error, Backlogged) or time.monotonic() >= deadline_s:
                    raise
            time.sleep(PAUSE_S)
