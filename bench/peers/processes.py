"""Server processes: started on loopback, measured, ended by their own ids."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.adapter import Place
from penstock.server.processes import children_of

START_S = 180.0
STOP_S = 20.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Missing(Exception):
    """A system cannot take part; the text says why and what to do."""


@dataclass(kw_only=True)
class Server:
    """A running system; ``stop`` ends every process that was started for it."""

    place: Place
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def stop(self, patience_s: float = STOP_S) -> None:
        for process in self.processes:
            process.terminate()
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                for pid in [*descendants(process.pid), process.pid]:
                    _kill(pid)
                process.wait()


def spawn(
    command: Sequence[str | Path],
    folder: Path,
    ready: Callable[[], bool],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server and wait until it is ready."""
    name = Path(command[0]).name
    output = folder / f"{name}.out"
    with output.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    deadline = time.monotonic() + START_S
    try:
        while not ready():
            if process.poll() is not None:
                raise Missing(f"{name} ended at once: {_tail(output)}")
            if time.monotonic() > deadline:
                raise Missing(f"{name} not ready in {START_S:.0f} s: {_tail(output)}")
            time.sleep(0.02)
    except BaseException:
        Server(place=Place(ports={}, pids=[]), processes=[process]).stop()
        raise
    return process


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def cpu_s(pids: Sequence[int]) -> float:
    """User and system time so far of the processes and their descendants."""
    ticks = 0
    for root in pids:
        for pid in [root, *descendants(root)]:
            try:
                stat = Path(f"/proc/{pid}/stat").read_bytes()
            except OSError:
                continue
            fields = stat.rpartition(b") ")[2].split(b" ")
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_PER_S


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in children_of(pid):
        found += [child, *descendants(child)]
    return found


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 9)


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return " / ".join(lines[-3:]) or "it said nothing"
