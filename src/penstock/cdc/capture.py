"""What a source of changes has to be able to do, whatever system it is."""

from __future__ import annotations

from typing import Protocol

from penstock.cdc.change import Change


class Capture(Protocol):
    """Changes in their order, from a place that is kept elsewhere.

    ``lag`` is how much of the source's own log is still to be read, as far as it is
    known; 0 if there is nothing.
    """

    lag: int | None

    def begin(self, place: str) -> None:
        """Go on behind ``place``; if it is empty, where the source itself believes
        this capture to be, or from now on.

        May be called again after an error. Raises CaptureLost, StoreError.
        """

    def forget(self) -> None:
        """Have the source forget this capture: it begins anew. Raises StoreError."""

    def take(self, most: int, wait_s: float) -> list[Change]:
        """Some changes, of not much more than TAKE_BYTES; none if there were none for
        so long.

        Raises StoreUnreachable if the source is away: begin again then.
        """

    def place(self) -> str:
        """Where the source stands behind what was taken."""

    def stored(self) -> None:
        """All that was taken is stored: the source may forget it."""

    def close(self) -> None: ...
