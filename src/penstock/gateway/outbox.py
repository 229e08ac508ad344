"""Answers in the order of their questions, each when its promise holds.

An answer that promises something waits for the commit of its group, and everything
behind it waits with it. If the commit fails, a publisher's answer becomes an error; a
settlement is written again by the next commit, so its answer goes on waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.broker.promised import Promised
from penstock.log import BrokerLog

Mark = TypeVar("Mark")
Lost = bytes | Callable[[], bytes] | None


class Outbox(Generic[Mark]):
    """``now`` and ``after`` put answers in, ``take`` gives those that may go."""

    __slots__ = ("_answers",)

    def __init__(self, log: BrokerLog) -> None:
        self._answers: Promised[tuple[bytes, Lost, Mark | None]] = Promised(log)

    def __bool__(self) -> bool:
        return len(self._answers) > 0

    def now(self, data: bytes, mark: Mark | None = None) -> None:
        """An answer that promises nothing."""
        self._answers.put(0, (data, None, mark))

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
        self._answers.put(group, (data, lost, mark), again=lost is None)

    def take(self) -> list[tuple[bytes, Mark | None]]:
        """The answers that may go now, each with the mark that was put on it."""
        return [
            (data if holds else _error(lost), mark)
            for (data, lost, mark), holds in self._answers.take()
        ]


def _error(lost: Lost) -> bytes:
    assert lost is not None, "said again until it holds"
    return lost if isinstance(lost, bytes) else lost()
