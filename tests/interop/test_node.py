"""The example in Node prints what its page says, with the real MQTT.js."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.http_client import token_of
from tests.serving import serving

pytestmark = [pytest.mark.slow, pytest.mark.interop]

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "node"
MAX_LINES = 60


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example beside the packages that it needs."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("component: Node with npm (not installed)")
    folder = tmp_path_factory.mktemp("node")
    for name in ("device.mjs", "package.json", "package-lock.json", ".npmrc"):
        shutil.copy(FOLDER / name, folder)
    run = subprocess.run(
        ["npm", "ci", "--loglevel", "error"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if run.returncode:
        pytest.skip("component: mqtt of npm (not to be had)")
    return folder


def test_the_program_prints_what_its_page_says(installed: Path, tmp_path: Path) -> None:
    page = (FOLDER / "README.md").read_text()
    (expected,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with serving(tmp_path, "--no-line", "--no-json", "--no-maze") as server:
        run = subprocess.run(
            ["node", "device.mjs"],
            cwd=installed,
            capture_output=True,
            text=True,
            timeout=60,
            env={
                **os.environ,
                "MQTT": f"mqtt://127.0.0.1:{server.ports['mqtt']}",
                "URL": f"http://127.0.0.1:{server.ports['http']}",
                "TOKEN": token_of(server),
            },
        )

    assert (run.stderr, run.stdout) == ("", expected)


def test_the_program_is_short() -> None:
    assert len((FOLDER / "device.mjs").read_text().splitlines()) < MAX_LINES
