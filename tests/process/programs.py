"""Penstock commands that run until they are ended, started again as often as you like.

For commands with ``--ready-file`` and ``--status-file``.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.serving import PENSTOCK, READY_S, STOP_S


class Program:
    """One command; ``told`` is what its ready file says."""

    def __init__(self, directory: Path, name: str, *command: str) -> None:
        self.told: dict[str, Any] = {}
        self.log = directory / f"{name}.log"
        self.command = list(command)
        self._ready = directory / f"{name}-ready.json"
        self._status = directory / f"{name}-status.json"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()

    def start(self) -> None:
        """Start it and wait until it is ready."""
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Start it."""
        assert self._process is None, "it runs already"
        self._ready.unlink(missing_ok=True)
        command = [*PENSTOCK, *self.command, "--ready-file", str(self._ready)]
        command += ["--status-file", str(self._status)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait_until_ready(self) -> None:
        assert self._process is not None, "it is not running"
        deadline_s = time.monotonic() + READY_S
        while not self._ready.exists():
            code = self._process.poll()
            assert code is None, f"ended with {code}: {self.log.read_text()}"
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.005)
        self.told = json.loads(self._ready.read_bytes())

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        process.kill()
        process.wait()

    def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        assert self._process is not None, "it is not running"
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        try:
            return process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def wait_for_text(self, text: str) -> None:
        """Until it has printed that."""
        deadline_s = time.monotonic() + READY_S
        while text not in self.log.read_text():
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.005)

    def wait_for(self, **wanted: object) -> None:
        """Until its status says so."""
        deadline_s = time.monotonic() + READY_S
        while not self._status.exists() or not self._says(wanted):
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.005)

    def _says(self, wanted: Mapping[str, object]) -> bool:
        status = self.status
        return all(status.get(name) == value for name, value in wanted.items())

    @property
    def status(self) -> dict[str, Any]:
        """What it said of itself last."""
        told: dict[str, Any] = json.loads(self._status.read_bytes())
        return told
