from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from penstock.cli.conf import SparkSetting
from penstock.cli.main import cli
from penstock.cli.refusal import Refusal


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("spark.executor.memory=2g", ("spark.executor.memory", "2g")),
        ("spark.a= -Da=b -Dc=d", ("spark.a", " -Da=b -Dc=d")),
        ("spark.a=", ("spark.a", "")),
    ],
)
def test_settings_of_spark_are_read(text: str, setting: tuple[str, str]) -> None:
    assert SparkSetting().convert(text, None, None) == setting


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spark.a", "'spark.a' is no setting of Spark: spark.NAME=VALUE"),
        ("memory=2g", "'memory' is no setting of Spark"),
        ("=", "'' is no setting of Spark"),
        ("spark.master=local", "the master is given by --master"),
    ],
)
def test_what_is_no_setting_is_refused(text: str, said: str) -> None:
    with pytest.raises(click.BadParameter, match=said):
        SparkSetting().convert(text, None, None)


@pytest.mark.parametrize(
    "name", ["spark.authenticate.secret", "spark.ssl.keyPassword", "spark.a.access.key"]
)
def test_secrets_do_not_belong_on_a_command_line(name: str) -> None:
    with pytest.raises(Refusal) as caught:
        SparkSetting().convert(f"{name}=4711", None, None)

    assert name in caught.value.message
    assert "4711" not in caught.value.message
    assert "spark-defaults.conf" in caught.value.hint


@pytest.mark.parametrize(
    "command",
    [["up"], ["pipeline", "run", "--store", "postgresql://h/d", "--checkpoint", "c"]],
)
def test_commands_that_start_spark_take_them(command: list[str]) -> None:
    result = CliRunner().invoke(cli, [*command, "--conf", "memory=2g"])

    assert result.exit_code == 2
    assert "'memory' is no setting of Spark" in result.output
