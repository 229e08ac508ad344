"""Answers in the order of their questions, each when its promise holds.

An answer that promises something waits for the commit of its group, and everything
behind it waits with it. If the commit fails, a publisher's answer becomes an error; a
settlement is written again by the next commit, so its answer goes on waiting.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from penstock.log import Log

Mark = TypeVar("Mark")
Lost = bytes | Callable[[], bytes] | None


class _Item(NamedTuple, Generic[Mark]):
    group: int
    data: bytes
    lost: Lost
    mark: Mark | None


class Outbox(Generic[Mark]):
    """``now`` and ``after`` put answers in, ``take`` gives those that may go."""

    __slots__ = ("_items", "_log")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._items: deque[_Item[Mark]] = deque()

    def __bool__(self) -> bool:
        return bool(self._items)

    def now(self, data: bytes, mark: Mark | None = None) -> None:
        """An answer that promises nothing."""
        self._items.append(_Item(0, data, None, mark))

    def after(
        self,
        group: int,
        data: bytes,
        lost: Lost = None,
        mark: Mark | None = None,
    ) -> None:
        """An answer that holds once ``group`` is committed; ``lost`` if it fails.

        What is rarely needed may be given as a function that makes it.
        """
        self._items.append(_Item(group, data, lost, mark))

    def take(self) -> list[tuple[bytes, Mark | None]]:
        """The answers that may go now, each with the mark that was put on it."""
        ready: list[tuple[bytes, Mark | None]] = []
        items, log = self._items, self._log
        while items:
            group, data, lost, mark = items[0]
            if group and (group > log.written or log.outcome(group) == "failed"):
                if log.outcome(group) != "failed":
                    break
                if lost is None:  # said again by the first group that did not fail
                    while log.outcome(group) == "failed":
                        group += 1
                    items[0] = _Item(group, data, None, mark)
                    continue
                data = lost if isinstance(lost, bytes) else lost()
            items.popleft()
            ready.append((data, mark))
        return ready
