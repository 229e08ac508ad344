"""The last epoch of each query, in the order of their commits, counted by owner.

There is room for so many queries. Beyond that whoever has the most of them loses the
oldest of its own: made-up queries of one user push out none of somebody else's, as long
as that one has fewer.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

import msgspec


class Epoch(msgspec.Struct, array_like=True, frozen=True):
    """The last epoch of a query, with what the query noted of its own place."""

    query: str
    number: int
    at_ms: int
    events: int
    last: bool = False
    """Whether no other will follow."""
    note: str = ""
    owner: str = ""
    """The user whose query it is; empty if it is nobody's."""


class Ledger:
    def __init__(self) -> None:
        self._epochs: OrderedDict[str, Epoch] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self.note_bytes: Counter[str] = Counter()
        """What notes take in memory, by owner."""

    def __len__(self) -> int:
        return len(self._epochs)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._epochs.values())

    def get(self, query: str) -> Epoch | None:
        return self._epochs.get(query)

    def put(self, epoch: Epoch) -> None:
        """Add an epoch of a query that has none here."""
        self._epochs[epoch.query] = epoch
        self._count(epoch, 1)

    def pop(self, query: str) -> None:
        """Forget a query, if it is there."""
        if (epoch := self._epochs.pop(query, None)) is not None:
            self._count(epoch, -1)

    def shorten(self, most: int) -> None:
        """Forget queries until there are no more than that."""
        while len(self._epochs) > most:
            _, owner = max((count, owner) for owner, count in self._counts.items())
            self.pop(next(one.query for one in self if one.owner == owner))

    def shorten_until(self, newer_than_ms: int) -> None:
        """Forget the oldest ones that were committed so long before the newest."""
        epochs = self._epochs
        while epochs:
            oldest, newest = next(iter(self)), next(reversed(epochs.values()))
            if newest.at_ms - oldest.at_ms <= newer_than_ms:
                return
            self.pop(oldest.query)

    def _count(self, epoch: Epoch, sign: int) -> None:
        for counter, amount in (
            (self._counts, 1),
            (self.note_bytes, held_bytes(epoch.note)),
        ):
            counter[epoch.owner] += sign * amount
            if not counter[epoch.owner]:
                del counter[epoch.owner]


def held_bytes(note: str) -> int:
    """What a note takes in memory at most: one wide character makes all of them so."""
    return len(note) * (1 if note.isascii() else 4)
