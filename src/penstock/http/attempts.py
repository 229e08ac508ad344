"""Failed logins by address, so that guessing passwords takes for ever."""

from __future__ import annotations

from collections import deque

from penstock.errors import TooManyAttempts

WINDOW_S = 60.0
# Addresses that are remembered; beyond that the oldest is forgiven.
MAX_ADDRESSES = 10_000


class Attempts:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._failures: dict[str, deque[float]] = {}

    def check(self, address: str, now_s: float) -> None:
        """Raises TooManyAttempts if this address has to wait."""
        failures = self._failures.get(address)
        if failures is None:
            return
        while failures and now_s - failures[0] >= WINDOW_S:
            failures.popleft()
        if len(failures) >= self._limit:
            wait_s = WINDOW_S - (now_s - failures[0])
            raise TooManyAttempts(address, self._limit, wait_s)
        if not failures:
            del self._failures[address]

    def forgive(self, address: str) -> None:
        """A login that was noted as failed has succeeded."""
        failures = self._failures.get(address)
        if failures:
            failures.pop()
        if not failures:
            self._failures.pop(address, None)

    def failed(self, address: str, now_s: float) -> None:
        """Note a failed login."""
        failures = self._failures.pop(address, None)
        if failures is None:
            failures = deque(maxlen=self._limit)
            if len(self._failures) >= MAX_ADDRESSES:
                del self._failures[next(iter(self._failures))]
        failures.append(now_s)
        self._failures[address] = failures
