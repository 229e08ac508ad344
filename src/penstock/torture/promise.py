"""What is said when a promise did not hold."""

from __future__ import annotations


class PromiseBroken(AssertionError):
    """The broker did what it says it never does."""


def holds(condition: bool, *what: object) -> None:
    """Raise PromiseBroken unless it does; ``what`` are words, put together then."""
    if not condition:
        raise PromiseBroken(" ".join(map(str, what)))
