"""Whose turn it is: one queue in which all clients are served alike.

Addresses take turns, and at each address its names do. One name at one address has one
turn at a time; what else it wants waits until that is over.

A turn that costs nothing comes when one that does would come, and keeps none waiting
but others of its own name: those wait as they would if it did cost something.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")
TurnKey = tuple[str, str]
Items = deque[tuple[T, bool]]
"""What waits, and whether it costs something."""
# Stands in place of an address where all of them are counted.
EVERYWHERE = None


class Turns(Generic[T]):
    """``put``, ``take`` as long as there is something, ``over`` after each."""

    def __init__(self, most: int, most_at_once: int) -> None:
        self._most = most
        self._most_at_once = most_at_once
        self._ready: dict[str, dict[str, Items[T]]] = {}
        """By address and name; of those it is one's turn."""
        self._held_up: dict[str, dict[str, Items[T]]] = {}
        """By name and address, until a turn of that name is over: ``take`` does not
        look at them to find out whose turn it is."""
        self._under_way: dict[str, dict[str, bool]] = {}
        """By name and address; whether they cost something."""
        self._busy = 0
        """How many of those do."""
        self._sizes: Counter[object] = Counter()
        """How many wait that cost something: by address, and in all. How many wait
        that do not: by name and address, and by name."""

    def full(self, key: TurnKey) -> bool:
        """Whether there is no room left; one address has half of it at most."""
        here = self._sizes[key[0]] + self._sizes[key]
        everywhere = self._sizes[EVERYWHERE] + self._sizes[EVERYWHERE, key[1]]
        return everywhere >= self._most or here >= self._most // 2

    def put(self, key: TurnKey, item: T, *, costs: bool = True) -> None:
        address, name = key
        items = self._held_up.get(name, {}).get(address)
        if items is None:
            items = self._ready.setdefault(address, {}).setdefault(name, deque())
        items.append((item, costs))
        self._count(key, 1, costs=costs)

    def take(self) -> T | None:
        """The next one, whose turn begins; None if no client may have one now."""
        while self._ready and self._busy < self._most_at_once:
            address, names = next(iter(self._ready.items()))
            name = next(iter(names))
            items = names.pop(name)
            begins = self._may_begin(address, name)
            if begins or not names:
                del self._ready[address]
            if begins and names:  # behind all others
                self._ready[address] = names
            if begins:
                return self._begin((address, name), items)
            self._held_up.setdefault(name, {})[address] = items
        return None

    def over(self, key: TurnKey) -> None:
        """A turn has ended, and another of that name may be ready."""
        address, name = key
        self._busy -= self._under_way[name].pop(address)
        under_way, held_up = self._under_way[name], self._held_up.get(name, {})
        if not under_way:
            del self._under_way[name]
        if address in held_up:  # behind others who have waited
            held_up[address] = held_up.pop(address)
        found = next((one for one in held_up if one not in under_way), None)
        if found is None:
            return
        self._ready.setdefault(found, {})[name] = held_up.pop(found)
        if not held_up:
            del self._held_up[name]

    def _may_begin(self, address: str, name: str) -> bool:
        under_way = self._under_way.get(name, {})
        return address not in under_way and len(under_way) < self._most_at_once

    def _begin(self, key: TurnKey, items: Items[T]) -> T:
        address, name = key
        item, costs = items.popleft()
        self._count(key, -1, costs=costs)
        self._under_way.setdefault(name, {})[address] = costs
        self._busy += costs
        if items:
            self._held_up.setdefault(name, {})[address] = items
        return item

    def _count(self, key: TurnKey, change: int, *, costs: bool) -> None:
        """Count what waits."""
        both = (key[0], EVERYWHERE) if costs else (key, (EVERYWHERE, key[1]))
        for one in both:
            self._sizes[one] += change
            if not self._sizes[one]:
                del self._sizes[one]
