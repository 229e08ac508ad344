"""Mosquitto: persistence on, no limit on what waits for a client.

Its persistence is a picture of memory, written every half hour and at the end; what
it confirms is not on disk by then. Limits are off, because it drops messages at them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from bench.peers.adapter import Place
from bench.peers.processes import Missing, Server, accepts, free_port, spawn

CONFIG = """
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_queued_messages 0
max_inflight_messages 0
connection_messages false
set_tcp_nodelay true
"""


def start(folder: Path, variant: str) -> Server:
    port, config = free_port(), folder / "mosquitto.conf"
    text = CONFIG.format(port=port, folder=folder)
    if os.geteuid() == 0:
        text += "user root\n"  # it would become a user who cannot write here
    config.write_text(text)
    process = spawn([program(), "-c", config], folder, lambda: accepts(port))
    place = Place(ports={"mqtt": port}, pids=[process.pid], variant=variant)
    return Server(place=place, processes=[process])


def program() -> Path:
    # Debian keeps it where only root looks.
    places = f"{os.environ.get('PATH', '')}:/usr/sbin"
    found = shutil.which("mosquitto", path=places)
    if found is None:
        raise Missing("mosquitto is not installed (Debian: mosquitto)")
    return Path(found)
