"""Backends of the journal, as the contract suite needs them.

Another backend joins with a class of the same kind and a line in ``BACKENDS``; what it
cannot bring about, it says.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random
from typing import Protocol

from penstock.files import make_directories
from penstock.log import Journal, Layout
from penstock.log.journal import FileJournal
from penstock.testing import CrashDisk, MemoryJournal

DIRECTORY = "/data"


class Backend(Protocol):
    """A place for one journal, whose writers may come and go."""

    doubts: bool
    """Whether it can leave an append in doubt, and fence a writer."""

    def writer(self) -> Journal:
        """Another writer, which has read nothing yet; the one before is gone."""

    def lose_power(self) -> None:
        """Lose what is not synced, or a part of it."""

    def fail_next(self) -> None:
        """Have the next append fail."""

    def doubt_next(self, *, stored: bool, looks: int = 1) -> None:
        """Have the next append end in doubt."""


class InFiles:
    doubts = False

    def __init__(self) -> None:
        self._disk = CrashDisk()
        self._layout = Layout(DIRECTORY)
        make_directories(self._disk, self._layout.journal)
        self._random = Random(7)

    def writer(self) -> Journal:
        return FileJournal(
            self._disk, self._layout, file_bytes=4096, entropy=self._random.randbytes
        )

    def lose_power(self) -> None:
        self._disk = self._disk.crashed(self._random)

    def fail_next(self) -> None:
        left = iter([OSError(errno.ENOSPC, "no room")])

        def fault(action: str, path: str) -> OSError | None:
            return next(left, None) if action == "write" else None

        self._disk.fail(fault)

    def doubt_next(self, *, stored: bool, looks: int = 1) -> None:
        raise AssertionError("what goes to a file is done or failed")


class InMemory:
    doubts = True

    def __init__(self) -> None:
        self._journal = MemoryJournal()

    def writer(self) -> Journal:
        self._journal = self._journal.reopened()
        return self._journal

    def lose_power(self) -> None:
        self._journal = self._journal.reopened(power_lost=True)

    def fail_next(self) -> None:
        self._journal.fail()

    def doubt_next(self, *, stored: bool, looks: int = 1) -> None:
        self._journal.doubt(stored=stored, looks=looks)


BACKENDS: dict[str, Callable[[], Backend]] = {"files": InFiles, "memory": InMemory}
