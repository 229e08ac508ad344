"""What there is of a topic."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """From which offset to which, and about how much it weighs."""

    start: int
    end: int
    bytes: int = 0
    number: int = 0
    """Which topic it is, of all that ever had its name; 0: it is not known."""

    @property
    def bytes_per_event(self) -> float:
        return self.bytes / max(self.end - self.start, 1)


def is_another(number: int, extent: Extent) -> bool:
    """Whether the topic is not the one that had this number."""
    return bool(number and extent.number) and number != extent.number
