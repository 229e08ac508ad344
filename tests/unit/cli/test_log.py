"""The options of each command; what the commands do is tested with real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.log import log
from penstock.log import Log


@pytest.mark.parametrize("command", sorted(log.commands))
def test_every_command_has_help_with_examples(command: str) -> None:
    result = CliRunner().invoke(log, [command, "--help"])

    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "DIR" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["stat"],
        ["dump", "d"],
        ["dump", "d", "t", "--count", "0"],
        ["dump", "d", "t", "--from", "-1"],
        ["export", "d", "t", "--format", "csv"],
        ["export", "d", "t", "--to", "x"],
        ["unknown"],
    ],
)
def test_wrong_arguments_exit_with_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(log, arguments)

    assert result.exit_code == 2
    assert "Usage:" in result.stderr


def test_verify_draws_a_bar_on_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Log.open(tmp_path).close()
    monkeypatch.setattr("penstock.cli.log._is_terminal", lambda: True)

    result = CliRunner().invoke(log, ["verify", str(tmp_path)])

    assert result.exit_code == 0
    assert "verifying" in result.stderr
    assert result.stdout.startswith("all intact: ")
