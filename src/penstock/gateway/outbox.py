"""Answers in the order of their questions, each when its promise holds.

An answer that promises something waits for the commit of its group, and everything
behind it waits with it. If the commit fails, a publisher's answer becomes an error; a
settlement is written again by the next commit, so its answer goes on waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from penstock.broker.promised import Promised, is_lost
from penstock.log import BrokerLog

AnswerMark = TypeVar("AnswerMark")
Lost = bytes | Callable[[], bytes] | None


class Outbox(Generic[AnswerMark]):
    """``now`` and ``after`` put answers in, ``take`` gives those that may go."""

    __slots__ = ("_answers", "_log")

    def __init__(self, log: BrokerLog) -> None:
        self._log = log
        self._answers: Promised[tuple[bytes, Lost, AnswerMark | None]] = Promised(log)

    def __bool__(self) -> bool:
        return len(self._answers) > 0

    def now(self, data: bytes, mark: AnswerMark | None = None) -> None:
        """An answer that promises nothing."""
        self._answers.put(0, (data, None, mark))

    def after(
        self,
        group: int,
        data: bytes,
        lost: Lost = None,
        mark: AnswerMark | None = None,
    ) -> None:
        """An answer that holds once ``group`` is committed; ``lost`` if it fails.

        What is rarely needed may be given as a function that makes it.
        """
        self._answers.put(group, (data, lost, mark), again=lost is None)

    def each(
        self, said: Sequence[bytes], groups: Sequence[int], lost: Callable[[int], bytes]
    ) -> None:
        """Answers that leave together, each of which holds with a group of its own.

        One of group 0 promises nothing. If the last of the groups fails, ``lost`` makes
        the answers to what is lost, by their places; the others are said all the same.
        """
        log, data = self._log, b"".join(said)

        def some_lost() -> bytes:
            return b"".join(
                lost(place) if is_lost(log, group) else said[place]
                for place, group in enumerate(groups)
            )

        if group := max(groups, default=0):
            self.after(group, data, some_lost)
        elif data:
            self.now(data)

    def take(self) -> list[tuple[bytes, AnswerMark | None]]:
        """The answers that may go now, each with the mark that was put on it."""
        return [
            (data if holds else _error(lost), mark)
            for (data, lost, mark), holds in self._answers.take()
        ]


def _error(lost: Lost) -> bytes:
    assert lost is not None, "said again until it holds"
    return lost if isinstance(lost, bytes) else lost()
