from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.demo import demo
from penstock.log import Reader


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()

    result = CliRunner().invoke(demo, ["--data", str(tmp_path)])

    assert result.exit_code == 2
    assert "is not empty" in result.stderr


def test_a_writer_that_does_not_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")

    result = CliRunner().invoke(demo, ["--data", str(tmp_path)])

    assert result.exit_code == 2
    assert "ended by itself" in result.stderr


@pytest.mark.slow
def test_the_demonstration_keeps_what_it_says(tmp_path: Path) -> None:
    data = tmp_path / "data"

    result = CliRunner().invoke(demo, ["--data", str(data)], catch_exceptions=False)

    assert result.exit_code == 0
    assert "group 1 is pending" in result.output
    assert "group 1 is synced" in result.output
    assert "confirmed events 0 are missing" in result.output
    assert "each once: yes" in result.output
    assert "frame fails its checksum" in result.output
    assert "begins at offset 30" in result.output
    with Reader.open(data) as reader:
        assert reader.topics() == ["audit", "orders"]
