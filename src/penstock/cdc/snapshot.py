"""What is there already, in front of what changes: one event for each document.

A snapshot is a source of changes like a capture, until it is done; what follows begins
at its place. It can be cut off at any point, and goes on from place and frontier.
"""

from __future__ import annotations

from typing import Protocol

from penstock.cdc.change import Change


class Snapshot(Protocol):
    is_done: bool
    """Everything has been taken."""

    def begin(self, place: str, frontier: str) -> None:
        """Go on from there; if both are empty, from the beginning.

        May be called again after an error. Raises CaptureLost, StoreError.
        """

    def take(self, most: int, wait_s: float) -> list[Change]:
        """Some documents, or changes of those that were told before.

        May be none, and that is not the end. Raises StoreUnreachable if the source is
        away: begin again then.
        """

    def place(self) -> str:
        """Where the source stands with what was taken."""

    def frontier(self) -> str:
        """Which documents were told, with what was taken."""

    def close(self) -> None: ...
