"""The dashboard's own logic, without a browser: layout, differences, many letters."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
TIMEOUT_S = 300


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "vite").exists(),
    reason="component: node with the packages of web/ (not installed)",
)
@pytest.mark.parametrize(
    "path", sorted((WEB / "test").glob("*.test.js")), ids=lambda path: path.stem
)
def test_the_tests_in_javascript_pass(path: Path) -> None:
    run = subprocess.run(
        ["node", "--test", str(path)],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )

    assert run.returncode == 0, run.stdout
