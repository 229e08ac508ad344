"""Waiting for groups: a promise holds when the group that carries it is written.

All that waits for a commit waits here: answers of connections in their order,
coroutines, publishers and handlers of this process. If the group fails, what it carried
is lost; or it is *said again* by its owner, and holds with the first group that does
not fail.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from penstock.log import BrokerLog

Item = TypeVar("Item")


def has_ended(log: BrokerLog, group: int) -> bool:
    """Whether it is known what became of a group."""
    return group <= log.written or log.outcome(group) == "failed"


def is_lost(log: BrokerLog, group: int) -> bool:
    return log.outcome(group) == "failed"


def carrier(log: BrokerLog, group: int) -> int:
    """The group that carries what is said again until one does not fail."""
    while log.outcome(group) == "failed":
        group += 1
    return group


class Promised(Generic[Item]):
    """Things that wait for groups, in the order in which they came.

    One of group 0 has nothing to wait for but those in front of it.
    """

    __slots__ = ("_entries", "_log")

    def __init__(self, log: BrokerLog) -> None:
        self._log = log
        # Plain tuples: many are made. Group, item, whether it is said again.
        self._entries: deque[tuple[int, Item, bool]] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Item]:
        return (item for _, item, _ in self._entries)

    def put(self, group: int, item: Item, *, again: bool = False) -> None:
        """``again``: it is said again if its group fails, and is never lost."""
        self._entries.append((group, item, again))

    def take(self) -> Iterator[tuple[Item, bool]]:
        """Those in front whose groups have ended, each with whether it holds.

        Each of them is gone when the next is asked for.
        """
        entries, log = self._entries, self._log
        while entries:
            first = group, item, again = entries[0]
            lost = False
            if group and (group > log.written or log.outcome(group) == "failed"):
                if log.outcome(group) != "failed":
                    return
                if again:
                    entries[0] = (carrier(log, group), item, True)
                    continue
                lost = True
            yield item, not lost
            if entries and entries[0] is first:
                entries.popleft()

    def take_any(self) -> Iterator[tuple[Item, bool]]:
        """As ``take``, also of those that stand behind others which wait on."""
        entries, self._entries = self._entries, deque()
        for entry in entries:
            alone: Promised[Item] = Promised(self._log)
            alone._entries.append(entry)
            yield from alone.take()
            self._entries.extend(alone._entries)

    def clear(self) -> None:
        self._entries.clear()
