"""The end of a run names the components whose tests were skipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
CASES = """
import pytest

@pytest.mark.skipif(True, reason="component: mosquitto-clients (not installed)")
def test_by_mark(): ...

def test_by_call():
    pytest.skip("component: kcat (not installed)")

def test_the_same_component_again():
    pytest.skip("component: kcat (not installed)")

def test_for_another_reason():
    pytest.skip("needs a full moon")
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_each_component_is_named_once(tmp_path: Path, workers: str) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_cases.py").write_text(CASES)

    run = subprocess.run(
        [*PYTEST, "-n", workers, "--dist", "loadscope", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    expected = "skipped components: kcat (not installed), "
    assert expected + "mosquitto-clients (not installed)\n" in run.stdout
    assert "moon" not in run.stdout
