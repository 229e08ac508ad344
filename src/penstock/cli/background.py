"""A command that goes on in the background once it is ready.

The process is a fork of the command. Until it is ready it speaks where the command was
given, and Ctrl-C ends both; then it lets go of the terminal, and writes to a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from penstock.files import Files, make_file
from penstock.supervisor.logs import shorten

Detach = Callable[[Path], None]
"""Called by the new process when it is ready, with the file to write to."""


def in_background(run: Callable[[Detach], int]) -> int:
    """Run in a process of its own; the exit code of this one.

    The caller gets 0 once the new process has detached itself, or what that ended with
    before. The new process returns from here, too, with what ``run`` returned.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        return run(lambda log: _detach(log, tell))
    os.close(tell)
    with os.fdopen(ready, "rb") as pipe:
        if pipe.read():
            return 0
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _detach(log: Path, tell: int) -> None:
    shorten(log)
    make_file(Files(), str(log))
    sys.stdout.flush()
    sys.stderr.flush()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(log, os.O_WRONLY | os.O_APPEND)
    for handle, place in ((nothing, 0), (said, 1), (said, 2)):
        os.dup2(handle, place)
    os.close(nothing)
    os.close(said)
    os.write(tell, b"ready")
    os.close(tell)
