"""A process that appends is killed at random moments; what it confirmed is there."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from penstock.log import Log, Reader, verify
from tests.effort import effort
from tests.process.appender import OPTIONS, TOPICS

ROOT = Path(__file__).parents[2]
KILLS = effort(4, 50)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["inline", "threaded", "gathering"])
def test_every_confirmed_event_survives_a_kill_once_and_in_order(
    tmp_path: Path, mode: str
) -> None:
    random = Random(mode)
    confirmed = dict.fromkeys(TOPICS, 0)
    for number in range(KILLS // 2):
        lines = random.choice([1, 20, 300, 1500])
        confirmed |= run_and_kill(tmp_path, mode, lines)

        check_reader(tmp_path, confirmed, f"kill {number}")
        assert not verify(tmp_path).damages, f"kill {number}"
        check_log(tmp_path, confirmed, f"kill {number}")


def appending(directory: Path, mode: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.process.appender", str(directory), mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def run_and_kill(directory: Path, mode: str, lines: int) -> dict[str, int]:
    """Let the appender confirm so many groups, kill it, and hear it out."""
    confirmed: dict[str, int] = {}
    with appending(directory, mode) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            for number, line in enumerate(child.stdout, 1):
                if line.endswith("\n"):
                    name, end = line.rsplit(" ", 1)
                    confirmed[name] = int(end)
                if number == lines:
                    child.kill()
        finally:
            child.kill()
    assert child.returncode == -signal.SIGKILL
    return confirmed


def check_reader(directory: Path, confirmed: dict[str, int], when: str) -> None:
    """A reader sees it all before anybody has recovered."""
    with Reader.open(directory) as reader:
        for name, end in confirmed.items():
            assert reader.topic(name).end_offset >= end, f"{when}: {name}"
            assert texts(reader, name) == expected(reader, name), f"{when}: {name}"


def check_log(directory: Path, confirmed: dict[str, int], when: str) -> None:
    log = Log.open(directory, OPTIONS)
    try:
        assert not len(log.damages), when
        for name, end in confirmed.items():
            assert log.topic(name).end_offset >= end, f"{when}: {name}"
            assert texts(log, name) == expected(log, name), f"{when}: {name}"
    finally:
        log.abandon()


def texts(log: Log | Reader, name: str) -> list[bytes]:
    found: list[bytes] = []
    offset = 0
    while batches := log.read(name, offset):
        for batch in batches:
            found += batch.payloads()
        offset = batches[-1].end_offset
    return found


def expected(log: Log | Reader, name: str) -> list[bytes]:
    return [b"%d" % offset for offset in range(log.topic(name).end_offset)]
