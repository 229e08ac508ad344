"""Ctrl-C where it must not tear apart what belongs together, and in a container."""

from __future__ import annotations

import os
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


def heed_sigterm() -> None:
    """As the first process of a container, take SIGTERM for a Ctrl-C.

    Such a process gets no signal that it has no handler for, so a command without one
    would have to be killed. Commands that have their own put it in place of this one.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


def _taken(note: Callable[[int, FrameType | None], None]) -> bool:
    """Have Ctrl-C noted, where it would be raised: another handler may have it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, note)
    except ValueError:
        return False  # it is raised in the main thread, and this is another one
    return True
