"""One part at work: started, watched, started again with growing pauses, ended."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import partial

from penstock.files import PRIVATE_UMASK, Files, make_file
from penstock.model.printable import printable
from penstock.supervisor.part import Part, Places, read_json

# Pauses before a part that died is started again: doubled each time, and forgotten
# when it has run for a while.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 15.0
STEADY_S = 30.0
# How much of a log is looked at for the last line.
_TAIL_BYTES = 8192
_PR_SET_PDEATHSIG = 1


class PartState(Enum):
    WAITING = "waiting"
    """For what it needs."""
    STARTING = "starting"
    READY = "ready"
    PAUSED = "restarting"
    """It died, and will be started again."""
    ENDED = "ended"


class Process:
    """A part and its process, if it has one. Belongs to one thread."""

    def __init__(
        self,
        part: Part,
        places: Places,
        clock: Callable[[], float] = time.monotonic,
        *,
        inherits: tuple[int, ...] = (),
    ) -> None:
        """``inherits``: files that it holds open until it ends."""
        self.part = part
        """May be replaced by what it is to be the next time that it is started."""
        self.restarts = 0
        self.was_ready = False
        """At any time since the beginning."""
        self.exit_code: int | None = None
        """Of the last time it ended."""
        self._places = places
        self._clock = clock
        self._inherits = inherits
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._due_s: float | None = None
        self._ended = False

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def state(self) -> PartState:
        if self._ended:
            return PartState.ENDED
        if self._process is None:
            return PartState.WAITING if self._due_s is None else PartState.PAUSED
        return PartState.READY if self.is_ready else PartState.STARTING

    @property
    def is_ready(self) -> bool:
        """Whether it has said so; one that cannot is so when it runs."""
        if self._process is None:
            return False
        return not self.part.says_ready or self.ready.get("pid") == self._process.pid

    @property
    def ready(self) -> dict[str, object]:
        return read_json(self._places.ready(self.part.name))

    @property
    def status(self) -> dict[str, object]:
        return read_json(self._places.status(self.part.name))

    def start(self) -> None:
        """Start it now."""
        self._due_s = None
        self._ended = False
        self._started_s = self._clock()
        name = self.part.name
        self._places.ready(name).unlink(missing_ok=True)
        command = [*self.part.command]
        if self.part.says_ready:
            command += ["--ready-file", str(self._places.ready(name))]
        if self.part.says_status:
            command += ["--status-file", str(self._places.status(name))]
        make_file(Files(), str(self._places.log(name)))
        with self._places.log(name).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.part.environment},
                pass_fds=self._inherits,
                umask=PRIVATE_UMASK,
                # Ctrl-C is for the one who started them all; it ends them in order.
                start_new_session=True,
                preexec_fn=partial(_end_with_parent, self.part.orphaned),
            )

    def look(self, *, startable: bool = True) -> None:
        """Take note of what became of it; start it again if that is due.

        ``startable``: whether what it needs is there.
        """
        if self._process is None:
            due = self._due_s is not None and self._clock() >= self._due_s
            if due and startable:
                self.restarts += 1
                self.start()
            return
        self.was_ready = self.was_ready or self.is_ready
        code = self._process.poll()
        if code is None:
            return
        # What it has started itself is of no use without it.
        _signal_all(self._process.pid, signal.SIGKILL)
        self._process = None
        self.exit_code = code
        if self.part.ends and code == 0:
            self._ended = True
            return
        if self._clock() - self._started_s >= STEADY_S:
            self._pause_s = FIRST_PAUSE_S
        self._due_s = self._clock() + self._pause_s
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def tell_to_end(self) -> None:
        """Ask it to end, and do not start it again."""
        self._ended = True
        self._due_s = None
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self, patience_s: float) -> bool:
        """Wait until it is gone, and end it for good after ``patience_s``.

        Whether it went by itself.
        """
        if self._process is None:
            return True
        went = True
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            went = False
        _signal_all(self._process.pid, signal.SIGKILL)
        self.exit_code = self._process.wait()
        self._process = None
        return went

    def reason(self) -> str:
        """How it ended the last time, for a person to read."""
        code = self.exit_code
        if code is not None and code < 0:
            return f"ended by {signal.Signals(-code).name}"
        said = self.last_line()
        return said if code is None or said else f"ended with {code}"

    def last_line(self) -> str:
        """The last line that it has said, for a person to read; no hint."""
        try:
            with self._places.log(self.part.name).open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(size - _TAIL_BYTES, 0))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        said = (printable(line.strip()) for line in reversed(lines))
        return next(
            (line for line in said if line and not line.startswith("hint:")), ""
        )


def _signal_all(pid: int, number: int) -> None:
    """To the process and what it has started itself."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)


def _end_with_parent(number: int) -> None:
    """Have this process end when the one that starts it does, however that ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
