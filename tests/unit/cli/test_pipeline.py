"""``penstock pipeline run``: its options; the run itself is in tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--checkpoint", "c"], "Missing option '--store'"),
        (["--store", "postgresql://h/d"], "Missing option '--checkpoint'"),
        (["--store", "x", "--checkpoint", "c", "--trigger", "soon"], "is no time"),
        (["--store", "ftp://h", "--checkpoint", "c"], "store ftp://h"),
    ],
)
def test_what_is_wrong_is_said_before_spark_is_started(
    arguments: list[str], text: str
) -> None:
    result = CliRunner().invoke(cli, ["pipeline", "run", *arguments])

    assert result.exit_code == 2
    assert text in result.output


def test_a_checkpoint_of_an_earlier_version_is_refused_with_what_to_do(
    tmp_path: Path,
) -> None:
    begun = tmp_path / "tweets" / "metadata"
    begun.parent.mkdir()
    begun.touch()
    # The store is nowhere: it is not looked for.
    command = ["--store", "postgresql://127.0.0.1:1/d", "--checkpoint", str(tmp_path)]

    result = CliRunner().invoke(cli, ["pipeline", "run", *command])

    assert result.exit_code == 2
    assert "was begun by an earlier version of the pipeline" in result.output
    assert "--data" in result.output
