"""The programs of examples/http print what their page says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.http_client import token_of
from tests.serving import serving

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "http"
SECTION = re.compile(r"^## (\S+)$.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXPECTED = dict(SECTION.findall((FOLDER / "README.md").read_text()))
MAX_LINES = 60
COMMANDS = {
    "session.sh": ["sh"],
    "follow.py": [sys.executable, "-W", "error"],
}


def test_every_program_has_its_section() -> None:
    programs = {path.name for path in FOLDER.iterdir() if path.suffix in (".py", ".sh")}

    assert set(EXPECTED) == programs == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_program_is_short(name: str) -> None:
    assert len((FOLDER / name).read_text().splitlines()) < MAX_LINES


@pytest.mark.parametrize("name", COMMANDS)
def test_program_prints_what_its_section_says(name: str, tmp_path: Path) -> None:
    if name.endswith(".sh") and shutil.which("curl") is None:
        pytest.skip("component: curl (not installed)")
    with serving(tmp_path, "--no-line", "--no-json", "--no-maze") as server:
        url = f"http://127.0.0.1:{server.ports['http']}"

        run = subprocess.run(
            [*COMMANDS[name], str(FOLDER / name)],
            env={**os.environ, "URL": url, "TOKEN": token_of(server)},
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert (run.stderr, run.stdout) == ("", EXPECTED[name])
