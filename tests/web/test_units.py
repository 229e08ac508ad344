"""The dashboard's own logic, without a browser: layout, differences, many letters."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
TIMEOUT_S = 300
# One Node for all files: it takes longer to start than they do.
ALL = "for (const path of process.argv.slice(1)) await import(path);"


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules" / "vite").exists(),
    reason="component: node with the packages of web/ (not installed)",
)
def test_the_tests_in_javascript_pass() -> None:
    paths = [str(path) for path in sorted((WEB / "test").glob("*.test.js"))]

    run = subprocess.run(
        ["node", "--input-type=module", "--eval", ALL, *paths],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )

    assert len(paths) > 4
    assert run.returncode == 0, run.stdout
