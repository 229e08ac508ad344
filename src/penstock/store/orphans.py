"""Processes of a PostgreSQL whose owner was killed: found by their mark, and ended.

Every process of a cluster carries a mark on its command line (PostgreSQL calls it
``cluster_name``), a random name that one data folder has. A process counts as ours if
it has the mark and belongs to the user who owns the data: a number in a file that was
left behind may be another process's by now.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

# A fast shutdown writes a checkpoint; an immediate one asks for nothing.
FAST_S = 30.0
IMMEDIATE_S = 5.0
KILLED_S = 10.0
PAUSE_S = 0.02


def processes_of(mark: str, uid: int, proc: Path = Path("/proc")) -> list[int]:
    """The processes with the mark that belong to the user, the oldest first."""
    found = []
    for entry in proc.iterdir():
        if entry.name.isdecimal() and _is_ours(entry, mark.encode(), uid):
            found.append(int(entry.name))
    return sorted(found)


def end_all(mark: str, uid: int) -> list[int]:
    """End what still runs, gently first; returns the processes that were found."""
    found = processes_of(mark, uid)
    left = found
    for number, patience_s in (
        (signal.SIGINT, FAST_S),
        (signal.SIGQUIT, IMMEDIATE_S),
        (signal.SIGKILL, KILLED_S),
    ):
        if not left:
            break
        for pid in left if number == signal.SIGKILL else left[:1]:
            # It may have gone just now.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        wait_until(lambda: not processes_of(mark, uid), patience_s)
        left = processes_of(mark, uid)
    return found


def wait_until(done: Callable[[], bool], patience_s: float) -> bool:
    """Whether it was done in time."""
    deadline = time.monotonic() + patience_s
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_S)
    return True


def _is_ours(entry: Path, mark: bytes, uid: int) -> bool:
    try:
        if entry.stat().st_uid != uid:
            return False
        return mark in (entry / "cmdline").read_bytes()
    except OSError:  # gone, or not to be read
        return False
