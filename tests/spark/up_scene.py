"""``penstock up`` as a process, what its parts say, and what it has left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.serving import PENSTOCK

# A machine that does much else takes its time, for Spark above all.
WAIT_S = 600.0
GONE_S = 120.0
# No port that somebody else may have.
OFF = ("CONSUMER", "PUBLISHER", "MAZE_EVENT", "MAZE_CLIENT", "MQTT")
PORTS = ("line", "native", "control", "http", "tweets")
Json = dict[str, Any]


class Running:
    """One ``penstock up`` over the folder ``data`` of a directory."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.data = directory / "data"
        self.log = directory / "up.log"
        command = [*PENSTOCK, "up", "--data", str(self.data), "--plain", *options]
        for name in PORTS:
            command += [f"--{name}-port", "0"]
        environment = {f"PENSTOCK_LISTEN_{name}_PORT": "off" for name in OFF}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
            )

    def ready(self, part: str) -> Json:
        """What a part said when it was ready; nothing if it is not."""
        return _read(self.data / "up" / "run" / f"{part}.ready.json")

    def status(self, part: str) -> Json:
        return _read(self.data / "up" / "run" / f"{part}.status.json")

    def pid(self, part: str) -> int:
        found: int = self.ready(part)["pid"]
        return found

    def until(self, done: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while not done():
            code = self.process.poll()
            assert code is None, f"{what}: ended with {code}: {self.said()}"
            assert time.monotonic() < deadline_s, f"{what}: {self.said()}"
            time.sleep(0.05)

    def until_worked(self, part: str, events: int) -> None:
        """Until a part that runs has done so much."""

        def done() -> bool:
            told = self.status(part)
            is_it = told.get("pid") == self.ready(part).get("pid", 0)
            return is_it and told["events"] >= events

        self.until(done, f"{part} has done {events}")

    def until_ready(self, *parts: str) -> None:
        self.until(
            lambda: all(runs(self.ready(part).get("pid")) for part in parts),
            f"{parts} are ready",
        )

    def kill(self, part: str) -> Callable[[], bool]:
        """End a part with no warning; whether it is back."""
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)
        return lambda: self.is_back(part, pid)

    def is_back(self, part: str, was: int) -> bool:
        return self.ready(part).get("pid", was) != was

    def wait(self) -> int:
        return self.process.wait(WAIT_S)

    def said(self) -> str:
        return self.log.read_text()[-6000:]


@contextmanager
def running(directory: Path, *options: str) -> Iterator[Running]:
    """It is ended with all its parts when the block ends."""
    one = Running(directory, *options)
    try:
        yield one
    finally:
        family = descendants(one.process.pid)
        one.process.kill()
        one.process.wait()
        for pid in family:
            if runs(pid):
                os.kill(pid, signal.SIGKILL)


def runs(pid: int | None) -> bool:
    """Whether there is such a process, and it has not ended."""
    return pid is not None and _stat(pid)[:1] not in ([], ["Z"])


def until_gone(pids: list[int]) -> None:
    """Until none of these processes is there; those of Spark end one after another."""
    deadline_s = time.monotonic() + GONE_S
    while left := [pid for pid in pids if runs(pid)]:
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)


def descendants(pid: int) -> list[int]:
    """Processes that this one has started, and those that they have, and so on."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (stat := _stat(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found[1:]


def _stat(pid: int) -> list[str]:
    """State, parent and so on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def _read(path: Path) -> Json:
    try:
        told: Json = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return told
