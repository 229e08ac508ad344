"""The shop of examples/orders: its page is played, and prints what the page says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import PENSTOCK, serving

ROOT = Path(__file__).resolve().parent.parent.parent
SHOP = ROOT / "examples" / "orders"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAMS = {".venv/bin/python": [sys.executable], ".venv/bin/penstock": PENSTOCK}
# What is another one in every run: times, ids, distances, and who was first.
CHANGING = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\+[\d.]+ (ms|s|min)\b", "+LATER"),
    (r"\b([A-Z_]+):\d+\b", r"\1:N"),
]


@pytest.mark.slow
def test_the_page_says_what_is_printed(tmp_path: Path) -> None:
    printed = ""
    compared = 0

    for kind, text in BLOCK.findall((SHOP / "README.md").read_text()):
        if kind == "sh":
            printed = "".join(run(line, tmp_path) for line in text.splitlines())
        if kind == "text":
            assert unchanging(printed) == unchanging(text)
            compared += 1

    assert compared == 5


@pytest.mark.slow
def test_it_prints_the_same_against_a_server(tmp_path: Path) -> None:
    blocks = BLOCK.findall((SHOP / "README.md").read_text())
    with serving(tmp_path, "--no-maze") as server:
        url = f"penstock://127.0.0.1:{server.ports['native']}"

        printed = run(f".venv/bin/python -m examples.orders {url}", tmp_path)

    assert printed == next(text for kind, text in blocks if kind == "text")


@pytest.mark.parametrize("path", sorted(SHOP.glob("*.py")), ids=lambda path: path.name)
def test_every_file_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 60


def run(line: str, directory: Path) -> str:
    program, *arguments = shlex.split(line)
    command = [*PROGRAMS[program], *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def unchanging(text: str) -> str:
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return text
