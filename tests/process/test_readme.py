"""The README, pasted line by line into a shell, where nothing else is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environments import environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text()
PORTS = (
    *("LINE", "CONSUMER", "PUBLISHER", "MAZE_EVENT", "MAZE_CLIENT", "NATIVE"),
    *("HTTP", "MQTT"),
)
TIMEOUT_S = 180.0


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of an environment that has the wheel and the extra sql."""
    folder = tmp_path_factory.mktemp("readme")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)),
        ],
        check=True,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    (wheel,) = folder.glob("penstock-*.whl")
    return environment(folder / "env", wheel, "sql")


def pasted(commands: Path, folder: Path, *lines: str) -> subprocess.CompletedProcess:
    """What a shell says to lines that come as fast as a clipboard has them."""
    free = {f"PENSTOCK_LISTEN_{name}_PORT": "0" for name in PORTS}
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    return subprocess.run(
        ["bash", "-e"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        cwd=folder,
        env={**kept, **free, "PATH": f"{commands}:{os.environ['PATH']}"},
    )


def test_the_first_minute_works_as_it_is_written(
    commands: Path, tmp_path: Path
) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    run = pasted(commands, tmp_path, *block.splitlines())

    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert "published 1 event to orders, last offset 0" in run.stdout
    assert '\n{"item": "tea", "price": 4.5}\n' in run.stdout
    assert re.search(r"^item +n$\n^tea +1$", run.stdout, re.MULTILINE)
    assert "stopped the server of penstock-data" in run.stdout


def test_a_server_that_is_put_into_the_background_is_waited_for(
    commands: Path, tmp_path: Path
) -> None:
    run = pasted(
        *(commands, tmp_path),
        "penstock serve > serve.log 2>&1 &",
        "penstock publish orders hello",
        "penstock topics",
        "penstock stop",
        "wait",
    )

    assert run.returncode == 0, run.stderr
    assert "published 1 event to orders, last offset 0" in run.stdout


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 80
