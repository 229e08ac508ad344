"""A running server for the tests of commands that need one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.desk_run import DeskRun, desk_run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DeskRun]:
    with desk_run(tmp_path / "data") as run:
        yield run


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is about to start, unless a test says so."""
    monkeypatch.setattr("penstock.cli.connect.START_S", 0.0)
