from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import cli


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "never"], "60s"),
        (["--rate", "0"], "--rate"),
        (["--no-spark", "--store", "mongodb://h/db"], "exclude each other"),
        (["--trigger", "1x"], "'--trigger': '1x' is no time"),
        (["--trigger", "1ms"], "--trigger is '0.001s': must be at least 10ms"),
        (["--master", "locl"], "--master is 'locl': must be local"),
        (["--store", "mysql://u:secret@h/d"], "--store is 'mysql://h/d': must be post"),
        (["--ack-delay", "soon"], "'--ack-delay'"),
        (["--user", "me"], "--user and --password-file need each other"),
        (["--user", "me", "--password-file", "nowhere"], "nowhere: No such file"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert said in result.output
    assert "secret" not in result.output


def test_a_broker_with_users_wants_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER_USERS_FILE", "my-users")

    result = run("--for", "1s")

    assert result.exit_code == 2
    assert "its users are in my-users" in result.output
    assert "--password-file" in result.output


def test_a_store_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_STORE", "mysql://u:secret@h/d")

    result = run("--for", "1s")

    assert result.exit_code == 2
    assert "--store is 'mysql://h/d'" in result.output


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["up", *arguments])
