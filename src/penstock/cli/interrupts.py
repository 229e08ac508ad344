"""Ctrl-C where it must not tear apart what belongs together."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def unbroken() -> Iterator[None]:
    """A Ctrl-C meanwhile raises KeyboardInterrupt behind this; a second one at once."""
    noted = []

    def note(number: int, _: FrameType | None) -> None:
        noted.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    if not _taken(note):
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if noted:
        raise KeyboardInterrupt


def _taken(note: Callable[[int, FrameType | None], None]) -> bool:
    """Have Ctrl-C noted, where it would be raised: somebody else may have it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, note)
    except ValueError:
        return False  # it is raised in the main thread, and this is another one
    return True
