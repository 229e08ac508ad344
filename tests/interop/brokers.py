"""The broker that MQTT clients talk to: Penstock, or Mosquitto as the proof of a test.

    PENSTOCK_INTEROP_REFERENCE=mosquitto pytest tests/interop

runs the tests that are about MQTT alone against Mosquitto: a test that fails there as
well is wrong about the protocol. Both are processes of their own on free ports, over a
temporary directory; ``kill`` and ``start`` are a crash and a restart.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.serving import Serving

# Taken away: a server takes variables of this kind for its settings.
REFERENCE = os.environ.pop("PENSTOCK_INTEROP_REFERENCE", "")
PAHO_TESTING = os.environ.pop("PENSTOCK_PAHO_TESTING", "")
READY_S = 30.0
RESERVED = range(20_000, 32_000)


class Broker(Protocol):
    """One broker, started again as often as you like."""

    @property
    def port(self) -> int: ...
    @property
    def tls_port(self) -> int: ...
    @property
    def web_port(self) -> int:
        """Where MQTT over WebSocket is spoken."""
        ...

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Penstock:
    """``penstock serve``; after a crash it comes back at the same ports."""

    def __init__(self, directory: Path, *flags: str) -> None:
        names = ["mqtt", "http"]
        if "--tls-cert" in flags:
            names.append("mqtts")
        self._ports = {name: free_port() for name in names}
        wanted = [
            word
            for name, port in self._ports.items()
            for word in (f"--{name}-port", str(port))
        ]
        self.server = Serving(directory, *wanted, *flags)

    @property
    def port(self) -> int:
        return self._ports["mqtt"]

    @property
    def tls_port(self) -> int:
        return self._ports["mqtts"]

    @property
    def web_port(self) -> int:
        return self._ports["http"]

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        self.server.kill()

    def close(self) -> None:
        if self.server.running:
            self.server.kill()


class Mosquitto:
    """Writes down everything at once, so that it may be killed like Penstock."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self.port, self.tls_port, self.web_port = (free_port() for _ in range(3))
        self._log = directory / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = directory / "mosquitto.conf"
        self._listening = [self.port, self.web_port]
        tls = dict(zip(flags[::2], flags[1::2], strict=True))
        lines = [
            "allow_anonymous true",
            "user root",
            "persistence true",
            f"persistence_location {directory}/",
            # After every change: it has no journal.
            "autosave_on_changes true",
            "autosave_interval 1",
            f"listener {self.port} 127.0.0.1",
            f"listener {self.web_port} 127.0.0.1",
            "protocol websockets",
        ]
        if tls:
            self._listening.append(self.tls_port)
            lines.append(f"listener {self.tls_port} 127.0.0.1")
            lines += [f"{TLS_WORDS[flag]} {value}" for flag, value in tls.items()]
            if "--tls-client-ca" in tls:
                lines.append("require_certificate true")
        self._settings.write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["mosquitto", "-c", str(self._settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline_s = time.monotonic() + READY_S
        while not all(map(accepts, self._listening)):
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline_s, self._log.read_text()
            time.sleep(0.01)

    def stop(self) -> None:
        assert self._process is not None, "it is not running"
        self._process.terminate()
        self._process.wait(READY_S)
        self._process = None

    def kill(self) -> None:
        assert self._process is not None, "it is not running"
        self._process.kill()
        self._process.wait(READY_S)
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()


TLS_WORDS = {
    "--tls-cert": "certfile",
    "--tls-key": "keyfile",
    "--tls-client-ca": "cafile",
}


@contextlib.contextmanager
def running(directory: Path, *flags: str) -> Iterator[Penstock | Mosquitto]:
    """The broker that is asked for, ready, and gone at the end."""
    broker: Penstock | Mosquitto
    if REFERENCE == "mosquitto":
        if shutil.which("mosquitto") is None:
            pytest.skip("component: mosquitto (not installed)")
        broker = Mosquitto(directory, *flags)
    else:
        broker = Penstock(directory, *flags)
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


def free_port() -> int:
    """One below those that the system gives to clients.

    A broker that was killed comes back to its port; nobody may have got it meanwhile.
    """
    for port in random.sample(RESERVED, 100):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False
