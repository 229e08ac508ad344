"""``penstock serve --background`` and ``penstock stop``, as a script uses them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.log import is_locked, lock_holder
from tests.serving import PENSTOCK

pytestmark = pytest.mark.slow

FREE = [
    *("--line-port", "0", "--native-port", "0", "--http-port", "0"),
    *("--no-json", "--no-maze", "--no-mqtt"),
]
HOLDER = """
import sys, penstock
with penstock.open(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


def penstock(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PENSTOCK, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PENSTOCK_DATA": str(data)},
        cwd=data.parent,
    )


def test_a_server_in_the_background_is_ready_when_the_command_ends(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"

    started = penstock(data, "serve", "--background", *FREE)
    published = penstock(data, "publish", "t", "hi")
    again = penstock(data, "serve", "--background", *FREE)
    stopped = penstock(data, "stop")
    twice = penstock(data, "stop")
    read = penstock(data, "topics", "show", "t")

    holder = f"is held by process {stopped.stdout.split()[-1].rstrip(')')}"
    assert (started.returncode, started.stderr) == (0, "")
    assert f"To stop it: penstock stop --data {data}" in started.stdout
    assert "Ctrl-C" not in started.stdout
    assert (published.returncode, published.stderr) == (0, "")
    assert again.returncode == 2
    assert holder in again.stderr, "what keeps it from starting is said here"
    assert f"to stop that one: penstock stop --data {data}\n" in again.stderr
    assert stopped.stdout.startswith(f"stopped the server of {data} (pid ")
    assert (twice.returncode, twice.stdout) == (2, "")
    assert twice.stderr.startswith(f"error: no server runs on data directory {data}\n")
    assert "working on its files" in read.stderr, "it has ended, and let go"
    log = data / "server.log"
    assert log.stat().st_mode & 0o777 == 0o600
    told = log.read_text().splitlines()
    assert told[0].startswith("info: the server is ready (pid ")
    assert "info: Topic t is created" in told
    assert told[-1] == "info: the server has stopped"


def test_a_server_that_hangs_is_named_and_a_killed_one_not_mistaken_for_a_running_one(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    penstock(data, "serve", "--background", *FREE).check_returncode()
    holder = lock_holder(str(data / "lock"))
    assert holder is not None

    os.kill(holder.pid, signal.SIGSTOP)
    late = penstock(data, "stop", "--timeout", "10ms")
    os.kill(holder.pid, signal.SIGKILL)
    # Nobody is its parent here, so it is gone when its lock is.
    while is_locked(str(data / "lock")):
        time.sleep(0.005)
    stopped = penstock(data, "stop")
    started = penstock(data, "serve", "--background", *FREE)

    assert late.returncode == 2
    assert f"pid {holder.pid} still runs after 0.01 s" in late.stderr
    assert stopped.returncode == 2
    assert "no server runs on" in stopped.stderr
    assert started.returncode == 0
    assert penstock(data, "stop").returncode == 0


def test_a_program_with_a_broker_of_its_own_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-c", HOLDER, str(data)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "open\n"

        stopped = penstock(data, "stop")

        assert program.poll() is None
        program.communicate("")
    assert (stopped.returncode, stopped.stdout) == (2, "")
    assert f"is held by process {program.pid}, which is no server" in stopped.stderr
