"""Failed logins in the log: who, where and how often, however many there are.

The first one from an address is said at once. What follows within a minute is one line
at its end. Addresses beyond so many share a line.
"""

from __future__ import annotations

import logging

from penstock.access.attempts import WINDOW_S

logger = logging.getLogger(__name__)

# Addresses that have lines of their own.
MAX_ADDRESSES = 50
# User names that a line has, and characters of each.
MAX_NAMES = 5
MAX_CHARACTERS = 80
OTHERS = "other addresses"


class LoginLog:
    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}

    def failed(self, user: str, address: str, gateway: str, now_s: float) -> None:
        """One more."""
        if address not in self._tallies and len(self._tallies) >= MAX_ADDRESSES:
            address = OTHERS
        tally = self._tallies.get(address)
        if tally is not None:
            tally.add(user, gateway)
            return
        self._tallies[address] = _Tally(now_s)
        logger.warning(
            "a login over %s as %r from %s has failed",
            gateway,
            user[:MAX_CHARACTERS],
            address,
            extra={"action": "login_failed", "peer": address, "count": 1},
        )

    def tick(self, now_s: float) -> None:
        """Say what a minute has brought; called every second."""
        for address, tally in list(self._tallies.items()):
            if 0 <= now_s - tally.since_s < WINDOW_S:
                continue
            if tally.count:
                self._say(address, tally)
                self._tallies[address] = _Tally(now_s)
            else:
                del self._tallies[address]

    def close(self) -> None:
        """Say what is left."""
        for address, tally in self._tallies.items():
            if tally.count:
                self._say(address, tally)
        self._tallies.clear()

    def _say(self, address: str, tally: _Tally) -> None:
        logger.warning(
            "%d more logins over %s from %s have failed within a minute, as %s",
            tally.count,
            ", ".join(sorted(tally.gateways)),
            address,
            tally.names,
            extra={"action": "login_failed", "peer": address, "count": tally.count},
        )


class _Tally:
    """What came from an address since its last line."""

    __slots__ = ("_names", "count", "gateways", "since_s")

    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self.count = 0
        self.gateways: set[str] = set()
        self._names: dict[str, None] = {}

    def add(self, user: str, gateway: str) -> None:
        self.count += 1
        self.gateways.add(gateway)
        if len(self._names) <= MAX_NAMES:  # one more tells that there are others
            self._names[user[:MAX_CHARACTERS]] = None

    @property
    def names(self) -> str:
        shown = ", ".join(repr(name) for name in list(self._names)[:MAX_NAMES])
        return f"{shown} and others" if len(self._names) > MAX_NAMES else shown
