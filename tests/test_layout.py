"""No committed file is tied to one machine or one package index."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# What would tie a committed file to one machine or one package index.
MACHINE_BOUND = re.compile(
    r"(?<![\w.*/)}\]>-])/(?:home|opt|root|work|Users)/\w"
    r"|pypi\.org|pythonhosted\.org|anaconda\.org"
    r"|--(?:(?:extra-)?index-url|find-links|trusted-host)\b|\bfile:///"
)


@pytest.mark.slow
def test_no_file_is_bound_to_a_machine_or_package_index() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in files_of_the_checkout()
        for match in MACHINE_BOUND.finditer(text_of(path))
    ]

    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "data in " + "/home" + "/me/data",
        "cd " + "/opt" + "/penstock",
        "https://" + "pypi" + ".org/simple",
        "pip install --" + "index-url x",
        "x @ file:" + "///somewhere",
    ],
)
def test_machine_bound_text_is_recognised(text: str) -> None:
    assert MACHINE_BOUND.search(text)


@pytest.mark.parametrize(
    "text", ["#!/usr/bin/env bash", "src/work/log", "$(HOME)/work/x", "a topic /work"]
)
def test_other_paths_are_left_alone(text: str) -> None:
    assert not MACHINE_BOUND.search(text)


def files_of_the_checkout() -> list[Path]:
    """Committed files, and new ones that git would take."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if run.returncode != 0:
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in run.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def text_of(path: Path) -> str:
    """The text of the file, or nothing where it is binary."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        return ""
