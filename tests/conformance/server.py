"""The server under test: Penstock, or the reference that proves the tests.

``PENSTOCK_CONFORMANCE_REFERENCE=mosquitto`` runs the suite against Mosquitto 2, in a
process of its own, on free ports of this machine. What it is known to do otherwise is
in ``deviations.py``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.access.grants import Rule
from penstock.server.users_file import set_password, set_rules
from tests.conformance.reference import REFERENCE
from tests.serving import serving

READY_S = 30.0
USER, PASSWORD = "ada", b"engine"
READER, READER_PASSWORD = "eve", b"apple"
"""May read below ``open/`` and publish to ``open/say``."""


@dataclass
class Endpoints:
    mqtt: int
    websocket: int
    path: str = "/mqtt"
    choosy: str = "choosy"
    """A topic that takes numbers alone, if the server can have such a topic."""


@contextlib.contextmanager
def running(folder: Path, *, secured: bool = False) -> Iterator[Endpoints]:
    """A server that is ready; ``secured``: one that knows its users."""
    with (mosquitto if REFERENCE == "mosquitto" else penstock)(folder, secured) as one:
        yield one


@contextlib.contextmanager
def penstock(folder: Path, secured: bool) -> Iterator[Endpoints]:
    flags = ["--no-line", "--no-json", "--no-maze", "--mqtt-port", "0"]
    if secured:
        users = folder / "users"
        make_users(users)
        flags += ["--users-file", str(users)]
    with serving(folder, *flags) as server:
        if not secured:
            words = ["schemas", "register", Endpoints.choosy, "-"]
            run = server.run(*words, input=b'{"type": "integer"}')
            assert run.returncode == 0, run.stderr
        yield Endpoints(server.ports["mqtt"], server.ports["http"])


def make_users(path: Path) -> None:
    set_password(path, USER, PASSWORD.decode())
    set_password(path, READER, READER_PASSWORD.decode())
    rules = [Rule("subscribe", "open/#"), Rule("publish", "open/say")]
    set_rules(path, READER, rules)


@contextlib.contextmanager
def mosquitto(folder: Path, secured: bool) -> Iterator[Endpoints]:
    port, websocket = free_port(), free_port()
    lines = [
        "per_listener_settings false",
        f"allow_anonymous {str(not secured).lower()}",
    ]
    lines += [f"listener {port} 127.0.0.1", f"listener {websocket} 127.0.0.1"]
    lines += ["protocol websockets", "user root", "max_topic_alias 10"]
    if secured:
        lines += [f"password_file {folder}/users", f"acl_file {folder}/acl"]
        words = [("-c", USER, PASSWORD), ("-b", READER, READER_PASSWORD)]
        for switch, user, password in words:
            command = ["mosquitto_passwd", "-b", switch, f"{folder}/users"]
            subprocess.run([*command, user, password.decode()], check=True)
        rules = [f"user {USER}", "topic #", "", f"user {READER}"]
        rules += ["topic read open/#", "topic write open/say", ""]
        (folder / "acl").write_text("\n".join(rules))
    config = folder / "mosquitto.conf"
    config.write_text("\n".join(lines) + "\n")
    program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program is not None, "mosquitto is not installed"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-c", config], stdout=log, stderr=log)
    try:
        for one in (port, websocket):
            wait_for(one)
        yield Endpoints(port, websocket, "/")
    finally:
        process.terminate()
        process.wait(READY_S)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int) -> None:
    deadline_s = time.monotonic() + READY_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.01)
    raise AssertionError(f"nobody listens at port {port}")
