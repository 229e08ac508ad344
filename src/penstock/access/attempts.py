"""Failed logins of the last minute: who has to wait before the next try.

What is counted is a user name from an address. Such a pair has so many tries a minute.
It has fewer as long as the name is tried from many addresses, or the address tries many
names; but not if that login has succeeded before. So a guesser has to wait whichever
way it goes about it, while another user at the same address, or the owner of a name
that others try, comes in at once.

Names that no user has are counted alike, so that nothing tells them apart, but on their
own: however many are made up, what is known of real ones is not forgotten for them.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from penstock.errors import TooManyAttempts

WINDOW_S = 60.0
# Tries of a pair while its name or its address is under suspicion.
FEW = 2
# A name has so many times a pair's tries from all addresses at which it has not come
# in before: who has many of them (as of 127.0.0.0/8) guesses no faster than that.
ALL_TOGETHER = 10
# Pairs, names and addresses that are remembered; beyond that the oldest is forgiven.
MAX_REMEMBERED = 10_000
# Stands in place of a user name where tokens are tried; no user is named so.
TOKENS = ""
# A peer that has one address of IPv6 has this network of them.
NETWORK_BITS = 64


class Attempts:
    """``limit`` is how often a pair may fail within a minute."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._addresses = _Failures(limit)
        self._real = _Tables(limit)
        self._made_up = _Tables(limit)
        self._succeeded: dict[tuple[str, str], None] = {}

    def check(self, address: str, user: str, now_s: float, *, known: bool) -> None:
        """Raises TooManyAttempts if that login has to wait."""
        tables = self._real if known else self._made_up
        pair = (place_of(address), user)
        tries = self._limit
        doubtful = tables.names.full(user, now_s) or self.suspects(address, now_s)
        if doubtful and pair not in self._succeeded:
            tries = min(FEW, tries)
        wait_s = tables.pairs.wait_s(pair, tries, now_s)
        if wait_s <= 0 and user != TOKENS and pair not in self._succeeded:
            tries = self._limit * ALL_TOGETHER
            wait_s = tables.everywhere.wait_s(user, tries, now_s)
        if wait_s > 0:
            said = "by token" if user == TOKENS else f"as {user[:80]}"
            raise TooManyAttempts(f"{said} from {address}", tries, wait_s)

    def suspects(self, address: str, now_s: float) -> bool:
        """Whether so many logins from there have failed, by whatever name."""
        return self._addresses.full(place_of(address), now_s)

    def failed(self, address: str, user: str, now_s: float, *, known: bool) -> None:
        """Note a failed login."""
        tables = self._real if known else self._made_up
        place = place_of(address)
        tables.pairs.note((place, user), now_s)
        self._addresses.note(place, now_s)
        if user != TOKENS:
            tables.names.note(user, now_s)
            if (place, user) not in self._succeeded:
                tables.everywhere.note(user, now_s)

    def succeeded(self, address: str, user: str) -> None:
        """Note that this user came in from there; it may do so again."""
        pair = (place_of(address), user)
        self._succeeded.pop(pair, None)
        if len(self._succeeded) >= MAX_REMEMBERED:
            del self._succeeded[next(iter(self._succeeded))]
        self._succeeded[pair] = None


class _Tables:
    """All that is counted by name; ``everywhere`` is where it has not succeeded."""

    __slots__ = ("everywhere", "names", "pairs")

    def __init__(self, limit: int) -> None:
        self.pairs = _Failures(limit)
        self.names = _Failures(limit)
        self.everywhere = _Failures(limit * ALL_TOGETHER)


class _Failures:
    """When something failed last, so many times at most; by whatever it counts."""

    __slots__ = ("_limit", "_times")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: dict[object, list[float]] = {}

    def note(self, key: object, now_s: float) -> None:
        recent = self._recent(key, now_s)
        self._times.pop(key, None)
        if len(self._times) >= MAX_REMEMBERED:
            del self._times[next(iter(self._times))]
        self._times[key] = [*recent, now_s][-self._limit :]

    def full(self, key: object, now_s: float) -> bool:
        return len(self._recent(key, now_s)) >= self._limit

    def wait_s(self, key: object, tries: int, now_s: float) -> float:
        """How long until there is a try left; 0 if there is one."""
        recent = self._recent(key, now_s)
        return WINDOW_S - (now_s - recent[-tries]) if len(recent) >= tries else 0.0

    def _recent(self, key: object, now_s: float) -> list[float]:
        times = self._times.get(key)
        if times is None:
            return []
        # What is to come was noted before the clock was set back.
        recent = [one for one in times if 0 <= now_s - one < WINDOW_S]
        if not recent:
            del self._times[key]
        return recent


@lru_cache(maxsize=1024)
def place_of(address: str) -> str:
    """What of an address cannot be changed at will by the peer that has it."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, NETWORK_BITS), strict=False))
