"""``penstock top`` on a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.client import connect
from tests.serving import PENSTOCK, Serving, serving
from tests.wire_client import PATIENCE_S

pytestmark = pytest.mark.slow

FLAGS = ("--no-json", "--no-maze")
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal: what it shows, and keys for it."""

    def __init__(self, server: Serving, columns: int, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        self.process = subprocess.Popen(
            [*PENSTOCK, *arguments, "--data", str(server.data)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={key: value for key, value in os.environ.items() if key != "COLUMNS"},
            start_new_session=True,
        )
        os.close(slave)
        self.raw = ""

    def until(self, text: str) -> str:
        """Read until it shows this; all that came with it."""
        deadline_s, seen = time.monotonic() + PATIENCE_S, ""
        while text not in seen:
            assert time.monotonic() < deadline_s, seen
            seen += self._read()
        return _CODES.sub("", seen)

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def ended(self) -> int:
        """Read what is left; the exit code."""
        deadline_s = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline_s, "it does not end"
            self._read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self) -> str:
        ready, _, _ = select.select([self._master], [], [], 0.1)
        try:
            data = os.read(self._master, 1 << 16) if ready else b""
        except OSError:  # nobody is at the other end any more
            data = b""
        text = data.decode(errors="replace")
        self.raw += text
        return text


@contextmanager
def terminal(server: Serving, columns: int = 80) -> Iterator[Terminal]:
    one = Terminal(server, columns, "top")
    try:
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("top"), *FLAGS) as server:
        yield server


@pytest.mark.parametrize("columns", [80, 200])
def test_it_looks_every_second_until_q(server: Serving, columns: int) -> None:
    with connect(server.data) as client, terminal(server, columns) as screen:
        client.publish("orders", b"x")
        first = screen.until("q quits")
        client.publish(f"later{columns}", b"x")
        screen.until(f"later{columns}")
        screen.press("q")

        assert screen.ended() == 0

    assert "Penstock" in first
    widths = [len(line.rstrip("\r")) for line in first.split("\n")]
    assert max(widths) <= columns
    # The screen is as it was before.
    assert screen.raw.index("\x1b[?1049h") < screen.raw.index("\x1b[?1049l")


def test_ctrl_c_ends_it_too(server: Serving) -> None:
    with terminal(server) as screen:
        screen.until("q quits")

        screen.process.send_signal(signal.SIGINT)

        assert screen.ended() == 0
        assert screen.raw.rstrip().endswith("\x1b[?1049l")


def test_a_server_that_comes_again_is_looked_at_again_and_one_that_is_away_is_told(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, *FLAGS) as server, terminal(server) as screen:
        screen.until("q quits")
        server.stop()
        screen.until("trying again")

        # Who begins to look while there is none is told so, on the plain screen.
        with terminal(server) as other:
            said = other.until("no server")
            assert other.ended() == 2

        server.start()
        screen.until("q quits")
        screen.press("q")

        assert screen.ended() == 0

    assert "\x1b[?1049h" not in said
    assert "\x1b[?1049h" not in other.raw
