from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.store import orphans

# Does as it is told: ends at the signals it was given, no others.
STUBBORN = """\
import signal, sys, time
for number in (signal.SIGINT, signal.SIGQUIT):
    if str(int(number)) in sys.argv[2:]:
        signal.signal(number, lambda *_: sys.exit(0))
    else:
        signal.signal(number, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def mark() -> str:
    return f"penstock-{uuid.uuid4().hex}"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "FAST_S", 0.3)
    monkeypatch.setattr(orphans, "IMMEDIATE_S", 0.3)


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, *arguments], stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        try:
            yield running
        finally:
            running.kill()


def test_process_is_known_by_mark_and_user(mark: str) -> None:
    uid = os.geteuid()

    with process(mark) as running:
        assert orphans.processes_of(mark, uid) == [running.pid]
        assert orphans.processes_of(mark, uid + 1) == []
        assert orphans.processes_of("another", uid) == []

    assert orphans.processes_of(mark, uid) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("obeyed", "code"),
    [
        ([str(int(signal.SIGINT))], 0),
        ([str(int(signal.SIGQUIT))], 0),
        ([], -signal.SIGKILL),
    ],
)
def test_what_is_asked_gently_first_ends_at_last(
    mark: str, obeyed: list[str], code: int
) -> None:
    with process(mark, *obeyed) as running, process("other") as stranger:
        found = orphans.end_all(mark, os.geteuid())

        assert found == [running.pid]
        assert running.wait(10) == code
        assert stranger.poll() is None


def test_nothing_to_end_is_nothing_found(mark: str) -> None:
    assert orphans.end_all(mark, os.geteuid()) == []


def test_waiting_ends_with_its_time() -> None:
    assert orphans.wait_until(lambda: True, 0)
    assert not orphans.wait_until(lambda: False, 0.05)
