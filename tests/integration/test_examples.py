"""Every example runs and prints what examples/README.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SECTION = re.compile(r"^## (\S+\.py)$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = dict(SECTION.findall((ROOT / "examples" / "README.md").read_text()))
MAX_LINES = 60
TIMEOUT_S = 60


def test_every_example_has_its_section() -> None:
    assert sorted(EXPECTED) == [path.name for path in EXAMPLES]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_prints_what_its_section_says(path: Path, tmp_path: Path) -> None:
    if path.name == "topic_to_arrow.py":
        pytest.importorskip("pyarrow", reason="component: pyarrow (not installed)")
    command = [sys.executable, "-W", "error", str(path)]

    run = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=TIMEOUT_S
    )

    assert (run.stderr, run.stdout) == ("", EXPECTED[path.name])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < MAX_LINES
