"""``penstock`` with a clock that is set from outside, and notes of what it syncs.

    python -m penstock.torture.child CLOCK NOTES serve …

CLOCK is a file with 8 bytes, a double: by how many seconds the clock is ahead. NOTES is
one for what is written and not synced.
"""

from __future__ import annotations

import ctypes
import mmap
import runpy
import signal
import struct
import sys
import time
from pathlib import Path

from penstock.torture.notes import WriteNotes, note_files

AHEAD = struct.Struct("d")
_PR_SET_PDEATHSIG = 1


class SteppedClock:
    """Stands in for the clock of this process; what it is ahead may change any time."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._ahead = mmap.mmap(file.fileno(), AHEAD.size, access=mmap.ACCESS_READ)
        self._time_ns = time.time_ns

    def time(self) -> float:
        return self.time_ns() / 1e9

    def time_ns(self) -> int:
        return self._time_ns() + int(AHEAD.unpack(self._ahead)[0] * 1e9)


if __name__ == "__main__":
    # Its parent may be killed, and it is of no use to any other process.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    clock = SteppedClock(Path(sys.argv.pop(1)))
    note_files(WriteNotes(Path(sys.argv.pop(1))))
    time.time, time.time_ns = clock.time, clock.time_ns
    runpy.run_module("penstock.cli.main", run_name="__main__", alter_sys=True)
