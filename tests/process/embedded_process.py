"""Programs with a broker of their own, each in a process that can be killed.

    with program("embedded_orders", data, side) as running:
        assert running.line() == "started"
        running.kill()

A program says what it has come to by lines on its standard output.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.log import Reader
from penstock.model.event import Event

ROOT = Path(__file__).resolve().parent.parent.parent
# A program that takes longer hangs; it is killed, and says nothing more.
TIMEOUT_S = 300.0
WAIT_S = 60.0


class Program:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def line(self) -> str:
        """The next line it says; empty if it ended."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def lines(self) -> list[str]:
        """All it still says until it ends."""
        assert self._process.stdout is not None
        return self._process.stdout.read().splitlines()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        self._process.terminate()
        return self._process.wait()

    def wait(self, timeout_s: float | None = None) -> int:
        """Its exit code, when it has ended."""
        return self._process.wait(timeout_s)


@contextmanager
def program(name: str, *arguments: object) -> Iterator[Program]:
    """A module that runs, told by its name below tests/process, or whole."""
    module = name if "." in name else f"tests.process.{name}"
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(TIMEOUT_S, process.kill)
        watchdog.start()
        try:
            yield Program(process)
        finally:
            watchdog.cancel()
            process.kill()


def wait_for(ready: Callable[[], bool]) -> None:
    """Return when something has come about; fails if it never does."""
    deadline_s = time.monotonic() + WAIT_S
    while not ready():
        assert time.monotonic() < deadline_s, "it never came about"
        time.sleep(0.01)


def events_of(data: Path, topic: str) -> list[Event]:
    """All events of a topic, read from its files."""
    found: list[Event] = []
    with Reader.open(data) as reader:
        if topic not in reader.topics():
            return found
        offset = 0
        while batches := reader.read(topic, offset):
            found += [event for batch in batches for event in batch.events()]
            offset = batches[-1].end_offset
    return found
