"""Whose turn it is: one queue in which everybody is served alike.

Addresses take turns, and at each address its names do. One name at one address has one
turn at a time; what else it wants waits until that is over.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")
Key = tuple[str, str]


class Turns(Generic[T]):
    """``put``, ``take`` as long as there is something, ``over`` after each."""

    def __init__(self, most: int, most_at_once: int | None = None) -> None:
        self._most = most
        self._most_at_once = most_at_once or most
        self._waiting: dict[str, dict[str, deque[T]]] = {}
        self._sizes: dict[str, int] = {}
        """How much waits at each address."""
        self._count = 0
        self._under_way: set[Key] = set()

    def __len__(self) -> int:
        return self._count

    def full(self, address: str) -> bool:
        """Whether there is no room left; one address has half of it at most."""
        here = self._sizes.get(address, 0)
        return self._count >= self._most or here >= self._most // 2

    def put(self, key: Key, item: T) -> None:
        address, name = key
        names = self._waiting.setdefault(address, {})
        names.setdefault(name, deque()).append(item)
        self._sizes[address] = self._sizes.get(address, 0) + 1
        self._count += 1

    def take(self) -> T | None:
        """The next one, whose turn begins; None if nobody may have one now."""
        if len(self._under_way) >= self._most_at_once:
            return None
        key = self._next()
        if key is None:
            return None
        self._under_way.add(key)
        return self._pop(key)

    def over(self, key: Key) -> None:
        """A turn has ended."""
        self._under_way.discard(key)

    def _next(self) -> Key | None:
        for address, names in self._waiting.items():
            for name in names:
                if (address, name) not in self._under_way:
                    return address, name
        return None

    def _pop(self, key: Key) -> T:
        """Take it out, and put address and name behind all others."""
        address, name = key
        names = self._waiting.pop(address)
        items = names.pop(name)
        item = items.popleft()
        self._count -= 1
        self._sizes[address] -= 1
        if items:
            names[name] = items
        if names:
            self._waiting[address] = names
        else:
            del self._sizes[address]
        return item
