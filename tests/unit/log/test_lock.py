from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.errors import DirectoryLocked
from penstock.log import Log
from penstock.log.lock import DirectoryLock, holder_pid, is_held

HOLD = """
import sys
from penstock.log.lock import DirectoryLock
lock = DirectoryLock(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it is told to end, or killed."""
    command = [sys.executable, "-c", HOLD, path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "lock")


@pytest.mark.slow
def test_second_process_is_told_who_holds_the_directory(path: str) -> None:
    with holder(path) as child, pytest.raises(DirectoryLocked) as caught:
        DirectoryLock(path)

    assert caught.value.pid == child.pid
    assert caught.value.path == str(Path(path).parent)
    assert str(child.pid) in str(caught.value)


@pytest.mark.slow
def test_second_log_in_another_process_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path):
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from penstock.log import Log; Log.open(sys.argv[1])",
                str(tmp_path),
            ],
            capture_output=True,
            text=True,
        )

    assert run.returncode == 1
    assert f"is held by process {os.getpid()}" in run.stderr


def test_second_log_in_this_process_is_refused(tmp_path: Path) -> None:
    with Log.open(tmp_path), pytest.raises(DirectoryLocked) as caught:
        Log.open(tmp_path)

    assert caught.value.pid == os.getpid()


@pytest.mark.slow
def test_lock_of_a_killed_process_is_taken_over(path: str) -> None:
    with holder(path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert holder_pid(path) == child.pid, "it left its name"

    lock = DirectoryLock(path)

    assert holder_pid(path) == os.getpid()
    lock.release()


def test_released_lock_is_free_and_names_nobody(path: str) -> None:
    DirectoryLock(path).release()

    assert holder_pid(path) is None
    DirectoryLock(path).release()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"pid": "x"}', b"\xff"])
def test_content_that_makes_no_sense_names_nobody(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)

    assert holder_pid(path) is None
    assert not is_held(path)


def test_missing_file_names_nobody(path: str) -> None:
    assert holder_pid(path) is None


@pytest.mark.slow
def test_holder_is_alive_until_it_is_killed(path: str) -> None:
    with holder(path) as child:
        assert is_held(path)
        child.kill()
        child.wait()

        assert not is_held(path)


def test_process_of_somebody_else_counts_as_alive(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_ours(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_ours)
    Path(path).write_bytes(b'{"pid": 1}')

    assert is_held(path)


def test_log_that_fails_to_open_lets_the_lock_go(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    checkpoint.unlink()
    checkpoint.mkdir()

    with pytest.raises(IsADirectoryError):
        Log.open(tmp_path)

    checkpoint.rmdir()
    Log.open(tmp_path).close()
