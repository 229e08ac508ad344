"""A real ``penstock serve``: its own process, data and ports.

It is started on free ports, and again as often as you like; ``kill`` and ``start`` are
a crash and a restart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.torture.promise import PromiseBroken, holds

PENSTOCK = (sys.executable, "-m", "penstock.cli.main")
PORTS = (
    *("line", "consumer", "publisher", "maze-event", "maze-client", "native"),
    *("http", "mqtt"),
)
READY_S = 120.0
STOP_S = 60.0
# Of what the server printed, in the message when it ends by itself.
_LAST_CHARS = 2000


class ServerProcess:
    """Its data and its log are in ``directory``; ``flags`` are those of serve."""

    program: Sequence[str] = PENSTOCK
    environment: Mapping[str, str] | None = None
    """None: that of this process."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.data = directory / "data"
        self.ports: dict[str, int] = {}
        self.log = directory / "server.log"
        self._flags = flags
        self._ready = directory / "ready.json"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        return self._running().pid

    def start(self) -> None:
        """Start it and wait until all listeners accept."""
        if self._process is not None:
            raise ValueError("it runs already")
        self._ready.unlink(missing_ok=True)
        command = [*self.program, "serve", "--data", str(self.data)]
        command += ["--ready-file", str(self._ready), *self._port_flags(), *self._flags]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
            )
        deadline_s = time.monotonic() + READY_S
        while not self._ready.exists():
            code = self._process.poll()
            holds(code is None, "the server ended with", code, self._printed())
            if time.monotonic() > deadline_s:
                raise PromiseBroken(f"the server does not start: {self._printed()}")
            time.sleep(0.005)
        self.ports = json.loads(self._ready.read_bytes())["ports"]

    def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        process, self._process = self._running(), None
        process.terminate()
        return process.wait(STOP_S)

    def kill(self) -> None:
        """End it with SIGKILL."""
        process, self._process = self._running(), None
        process.kill()
        process.wait()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ValueError("it is not running")
        return self._process

    def _printed(self) -> str:
        return self.log.read_text(errors="replace")[-_LAST_CHARS:]

    def _port_flags(self) -> Iterator[str]:
        for name in PORTS:
            switch = "json" if name in ("consumer", "publisher") else name.split("-")[0]
            if f"--no-{switch}" not in self._flags:
                yield from (f"--{name}-port", "0")
