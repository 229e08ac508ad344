"""A real ``penstock serve`` for tests: its own process, data and ports.

    with serving(tmp_path) as server:
        socket.create_connection(("127.0.0.1", server.ports["line"]))

Free ports, a data directory below the given one; ready when the block begins, gone
when it ends. ``kill`` and ``start`` in between are a crash and a restart.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from penstock.torture import server

PENSTOCK = [*server.PENSTOCK]
READY_S = server.READY_S
STOP_S = server.STOP_S


class Serving(server.ServerProcess):
    """One server, started again as often as you like."""

    def run(self, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess:
        """A penstock command that is told of this server's data directory."""
        return subprocess.run(
            [*PENSTOCK, *arguments],
            input=input,
            capture_output=True,
            timeout=STOP_S,
            env={**os.environ, "PENSTOCK_DATA": str(self.data)},
        )


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
