"""amqtt: the best known broker in Python, in an environment of its own.

It wants other versions of libraries that Penstock uses.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.peers.adapter import Place
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

VERSION = "0.12.1"
HOME = Path(sys.prefix) / "peers" / f"amqtt-{VERSION}"
CONFIG = """
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
    max_connections: 20000
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""


def start(folder: Path, variant: str) -> Server:
    port, config = free_port(), folder / "amqtt.yaml"
    config.write_text(CONFIG.format(port=port))
    process = spawn([program(), "-c", config], folder, lambda: accepts(port))
    place = Place(ports={"mqtt": port}, pids=[process.pid], variant=variant)
    return Server(place=place, processes=[process])


def program() -> Path:
    found = HOME / "bin" / "amqtt"
    if not found.exists():
        raise Missing("amqtt is not installed: python -m bench.peers --install")
    return found


def steps() -> list[list[str]]:
    """The commands that make its environment, inside this one."""
    return [
        [sys.executable, "-m", "venv", str(HOME)],
        [str(HOME / "bin" / "pip"), "install", "-qq", f"amqtt=={VERSION}"],
    ]
