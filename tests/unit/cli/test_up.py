from __future__ import annotations

import pytest
from click.testing import CliRunner

from penstock.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "never"], "60s"),
        (["--rate", "0"], "--rate"),
        (["--no-spark", "--store", "mongodb://h/db"], "exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(cli, ["up", *arguments])

    assert result.exit_code == 2
    assert said in result.output
