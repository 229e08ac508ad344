from __future__ import annotations

import logging

import click
import pytest
from click.testing import CliRunner

from penstock import __version__
from penstock.cli.main import Commands, cli
from penstock.errors import NotADataDirectory, UnknownTopic

HINT = f"hint: {NotADataDirectory.hint}\n"


def test_the_version_is_the_packages() -> None:
    result = CliRunner().invoke(cli, ["--version"])

    assert result.output == f"penstock, version {__version__}\n"


def test_help_says_where_to_start() -> None:
    result = CliRunner().invoke(cli, ["-h"])

    assert "penstock demo" in result.output
    assert "Exit code" in result.output


def test_without_a_command_there_is_help() -> None:
    assert "Commands:" in CliRunner().invoke(cli, []).output


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (UnknownTopic("t"), "error: topic t does not exist\n"),
        (
            NotADataDirectory("d"),
            "error: d is not a Penstock data directory\n" + HINT,
        ),
        (
            PermissionError(13, "Permission denied", "data/lock"),
            "error: data/lock: Permission denied\n",
        ),
        (OSError("odd"), "error: odd\n"),
    ],
)
def test_errors_are_one_line_and_exit_with_2(error: Exception, said: str) -> None:
    result = CliRunner().invoke(commands_that_raise(error), ["fail"])

    assert (result.stdout, result.stderr, result.exit_code) == ("", said, 2)


def test_a_reader_that_has_gone_is_no_error() -> None:
    result = CliRunner().invoke(commands_that_raise(BrokenPipeError()), ["fail"])

    assert (result.output, result.exit_code) == ("", 141)


def test_bugs_are_not_hidden() -> None:
    result = CliRunner().invoke(commands_that_raise(ZeroDivisionError()), ["fail"])

    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("options", "said"),
    [([], "warning: careful\n"), (["-v"], "info: by the way\nwarning: careful\n")],
)
def test_verbose_says_more(
    options: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk() -> None:
        logging.getLogger("penstock.log").info("by the way")
        logging.getLogger("penstock.log").warning("careful")

    monkeypatch.setitem(cli.commands, "talk", click.Command("talk", callback=talk))

    result = CliRunner().invoke(cli, [*options, "talk"])

    assert result.stderr == said


def commands_that_raise(error: BaseException) -> click.Group:
    def fail() -> None:
        raise error

    return Commands("penstock", commands=[click.Command("fail", callback=fail)])
