"""The tutorials are carried out as they are written."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from pathlib import Path

import pytest

from tests.tutorials import pattern, play, steps

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "tutorials"
PORTS = (
    *("LINE", "CONSUMER", "PUBLISHER", "MAZE_EVENT", "MAZE_CLIENT", "NATIVE"),
    *("HTTP", "MQTT"),
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Commands of this environment, and ports that are free."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    free = {f"PENSTOCK_LISTEN_{name}_PORT": "0" for name in PORTS}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**kept, **free, "PATH": path}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first-handler", "from-celery"])
def test_a_tutorial_is_true(
    name: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    ports = {"18410": free_port()}

    assert play(PAGES / f"{name}.md", tmp_path, environment, ports) >= 4


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.interop
def test_a_device_reaches_a_table(tmp_path: Path, environment: dict[str, str]) -> None:
    if shutil.which("mosquitto_pub") is None:
        pytest.skip("component: mosquitto-clients (not installed)")
    ports = {"18830": free_port()}

    assert play(PAGES / "device-to-spark.md", tmp_path, environment, ports) >= 6


def test_every_tutorial_is_tried() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {
        *("first-handler", "from-celery", "device-to-spark"),
    }


def test_a_page_that_is_not_true_is_noticed() -> None:
    (one, two) = steps("$ echo a\na\n$ true\n")

    assert (one.command, one.printed, two.printed) == ("echo a", "a\n", "")
    assert re.fullmatch(pattern("a…c\n…\n"), "abc\n1\n2\n", re.DOTALL)
    assert not re.fullmatch(pattern("a…c\n"), "abc\nd\n", re.DOTALL)
    assert not re.fullmatch(pattern("a…c\n"), "ab\nc\n", re.DOTALL)
