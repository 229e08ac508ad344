"""A real ``penstock serve`` for tests: its own process, data and ports.

    with serving(tmp_path) as server:
        socket.create_connection(("127.0.0.1", server.ports["line"]))

Free ports, a data directory below the given one; ready when the block begins, gone
when it ends. ``kill`` and ``start`` in between are a crash and a restart.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PENSTOCK = [sys.executable, "-m", "penstock.cli.main"]
PORTS = (
    *("line", "consumer", "publisher", "maze-event", "maze-client", "native"),
    *("http", "mqtt"),
)
READY_S = 120.0
STOP_S = 60.0


class Serving:
    """One server, started again as often as you like."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.data = directory / "data"
        self.ports: dict[str, int] = {}
        self.log = directory / "server.log"
        self._flags = flags
        self._ready = directory / "ready.json"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "it is not running"
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until all listeners accept."""
        assert self._process is None, "it runs already"
        self._ready.unlink(missing_ok=True)
        command = [*PENSTOCK, "serve", "--data", str(self.data)]
        command += ["--ready-file", str(self._ready), *self._port_flags(), *self._flags]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline_s = time.monotonic() + READY_S
        while not self._ready.exists():
            code = self._process.poll()
            assert code is None, f"ended with {code}: {self.log.read_text()}"
            assert time.monotonic() < deadline_s, self.log.read_text()
            time.sleep(0.005)
        self.ports = json.loads(self._ready.read_bytes())["ports"]

    def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        process.terminate()
        return process.wait(STOP_S)

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self._process is not None, "it is not running"
        process, self._process = self._process, None
        process.kill()
        process.wait()

    def run(self, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess:
        """A penstock command that is told of this server's data directory."""
        return subprocess.run(
            [*PENSTOCK, *arguments],
            input=input,
            capture_output=True,
            timeout=STOP_S,
            env={**os.environ, "PENSTOCK_DATA": str(self.data)},
        )

    @property
    def running(self) -> bool:
        return self._process is not None

    def _port_flags(self) -> Iterator[str]:
        for name in PORTS:
            switch = "json" if name in ("consumer", "publisher") else name.split("-")[0]
            if f"--no-{switch}" not in self._flags:
                yield from (f"--{name}-port", "0")


@contextlib.contextmanager
def serving(directory: Path, *flags: str) -> Iterator[Serving]:
    """A server that is ready; it is killed at the end if it still runs."""
    server = Serving(directory, *flags)
    try:
        server.start()
        yield server
    finally:
        if server.running:
            server.kill()
