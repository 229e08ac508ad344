"""Two processes and one directory: the second is told who has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock.errors import DirectoryLocked
from tests.process.embedded_process import program

pytestmark = pytest.mark.slow


def test_the_second_process_is_told_who_has_the_directory_and_opens_it_after_a_kill(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with program("examples.orders", data, "--orders", "1", "--stay") as first:
        while first.line() != "running, Ctrl-C stops it":
            pass

        with pytest.raises(DirectoryLocked, match=rf"\b{first.pid}\b"):
            penstock.open(data).__enter__()
        with program("examples.orders", data, "--orders", "1") as second:
            assert second.wait() != 0
        # By the socket of the first one it is open to all.
        with penstock.open(f"penstock://{data}") as broker:
            broker.publish("hello", b"from outside")
        first.kill()

    with penstock.open(data) as broker:
        assert broker.publish("hello", b"from inside").offset == 1
