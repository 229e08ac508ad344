"""One run in a directory at a time, and none beside parts of an earlier one.

Two locks: one is held by ``penstock up`` itself, the other one also by its parts, until
the last of them has ended. If it is killed, its parts end by themselves, which takes
them some time; the next run waits for that.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import PartFailed
from penstock.supervisor.part import Places

logger = logging.getLogger(__name__)

# How long parts of an earlier run may take to end: ingest stores what it has read.
PATIENCE_S = 120.0
LOOK_S = 0.1


@contextmanager
def alone(places: Places, patience_s: float = PATIENCE_S) -> Iterator[int]:
    """Hold both; gives the file that parts inherit. Raises PartFailed."""
    with _opened(places.lock) as own, _opened(places.parts_lock) as parts:
        if not _locked(own):
            reason = f"another one runs in {places.directory}"
            raise PartFailed("up", 1, reason)
        if not _locked(parts):
            _wait(parts, places, patience_s)
        yield parts


def _wait(parts: int, places: Places, patience_s: float) -> None:
    logger.warning(
        "parts of an earlier run still end in %s; waiting for them",
        places.directory,
        extra={"action": "parts_awaited"},
    )
    deadline_s = time.monotonic() + patience_s
    while not _locked(parts):
        if time.monotonic() >= deadline_s:
            reason = f"parts of an earlier run do not end in {places.directory}"
            raise PartFailed("up", 1, reason)
        time.sleep(LOOK_S)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
