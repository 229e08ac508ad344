"""Changes that the journal does not hold for sure yet, so that they can be undone.

A change is *open* until the group it belongs to is closed, then *flying* until that
group's commit has ended. A failed commit takes back both.
"""

from __future__ import annotations

from typing import Generic, TypeVar

UndoableChange = TypeVar("UndoableChange")


class Unconfirmed(Generic[UndoableChange]):
    __slots__ = ("_flying", "_open")

    def __init__(self) -> None:
        self._open: list[UndoableChange] = []
        self._flying: list[UndoableChange] = []

    def __bool__(self) -> bool:
        """Whether changes wait for a group to be closed."""
        return bool(self._open)

    def add(self, change: UndoableChange) -> None:
        self._open.append(change)

    def close(self) -> list[UndoableChange]:
        """The open changes; they belong to the group that is closed now."""
        closed, self._open = self._open, []
        self._flying += closed
        return closed

    def confirm(self) -> list[UndoableChange]:
        """The closed group was committed; what it has changed."""
        confirmed, self._flying = self._flying, []
        return confirmed

    @property
    def confirmed(self) -> bool:
        """Whether there is nothing that could be taken back."""
        return not self._open and not self._flying

    def take_back(self) -> list[UndoableChange]:
        """Everything that is not confirmed, the newest first."""
        lost = [*self._flying, *self._open]
        self._open, self._flying = [], []
        return lost[::-1]
