"""``penstock pipeline run``: its options; the run itself is in tests/spark."""

from __future__ import annotations

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
