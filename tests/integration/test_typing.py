"""Types reach from a topic to its publishers and handlers: mypy refuses what is wrong.

That it takes what is right is seen in examples/, which ``make types`` checks strictly.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = ROOT / "tests" / "data" / "typing" / "wrong_programs.py.txt"
TIMEOUT_S = 300


@pytest.mark.slow
def test_mypy_refuses_every_wrong_line_and_no_other(tmp_path: Path) -> None:
    text = PROGRAMS.read_text()
    place = tmp_path / "wrong_programs.py"
    place.write_text(text)
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(place)]

    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_S
    )

    lines = enumerate(text.splitlines(), 1)
    expected = [number for number, line in lines if line.endswith("# error")]
    found = re.findall(r"wrong_programs\.py:(\d+): error:", run.stdout)
    assert sorted({int(number) for number in found}) == expected, run.stdout
    assert len(expected) > 10
