"""Penstock itself, started as a user starts it: ``penstock serve``.

``sync`` is what a topic is by default: confirmed after the disk has it. ``os``
topics are confirmed when they are written.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bench.peers.adapter import Place
from bench.peers.processes import Missing, Server, spawn

GATEWAYS = (
    *("line", "consumer", "publisher", "maze-event", "maze-client", "native"),
    *("http", "mqtt"),
)
TOPIC = "t0"
# All thousand readers come from one address here, and a hundred thousand topics are the
# limit, those of the broker itself included.
ENVIRONMENT = {
    "PENSTOCK_BROKER_MAX_TOPICS": "200000",
    "PENSTOCK_SERVER_MAX_CONNECTIONS_PER_ADDRESS": "0",
    "PENSTOCK_SERVER_MAX_CONNECTIONS": "11000",
}


def start(folder: Path, variant: str, *, http: bool = True) -> Server:
    ready, data = folder / "ready.json", folder / "data"
    # Of a server that ran here before.
    ready.unlink(missing_ok=True)
    gateways = [name for name in GATEWAYS if http or name != "http"]
    ports = [word for name in gateways for word in (f"--{name}-port", "0")]
    if not http:
        ports.append("--no-http")
    process = spawn(
        [program(), "serve", "--data", data, "--ready-file", ready, *ports],
        folder,
        lambda: _read(ready) is not None,
        ENVIRONMENT,
    )
    place = Place(
        ports=(_read(ready) or {})["ports"], pids=[process.pid], variant=variant
    )
    server = Server(place=place, processes=[process])
    if variant == "os":
        try:
            _create(data)
        except BaseException:
            server.stop()
            raise
    return server


def program() -> Path:
    path = Path(sys.executable).with_name("penstock")
    if not path.exists():
        raise Missing("penstock is not installed beside this Python: make setup")
    return path


def _create(data: Path) -> None:
    words = ["topics", "create", TOPIC, "--durability", "os", "--data", str(data)]
    run = subprocess.run([program(), *words], capture_output=True, text=True)
    if run.returncode:
        reason = run.stderr.strip().splitlines()[-1:]
        raise Missing(f"no topic of durability os: {' '.join(reason)}")


def _read(ready: Path) -> dict[str, dict[str, int]] | None:
    try:
        content: dict[str, dict[str, int]] = json.loads(ready.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return content
