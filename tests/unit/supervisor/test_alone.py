from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import PartFailed
from penstock.supervisor.alone import alone
from penstock.supervisor.part import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    places = Places(tmp_path)
    places.make()
    return places


def test_a_second_one_is_refused_at_once(places: Places) -> None:
    with (
        alone(places),
        pytest.raises(PartFailed, match="another one runs"),
        alone(places),
    ):
        pass


def test_parts_of_an_earlier_run_are_waited_for(places: Places) -> None:
    read, write = os.pipe()
    with alone(places) as held:
        part = subprocess.Popen(
            [sys.executable, "-c", f"import os; os.read({read}, 1)"],
            pass_fds=(held, read),
        )
    try:
        with (
            pytest.raises(PartFailed, match="parts of an earlier run"),
            alone(places, 0.0),
        ):
            pass
        os.write(write, b"x")

        with alone(places):
            assert part.wait(0) == 0
    finally:
        part.kill()
        part.wait()
        os.close(read)
        os.close(write)
