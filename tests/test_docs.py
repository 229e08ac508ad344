"""Documentation says everything there is: commands, options, errors, actions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from penstock import errors
from penstock.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ACTION = re.compile(r'"action": *"(\w+)"')


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in sorted(group.commands.items()):
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


COMMANDS = dict(commands(cli, "penstock"))
OPTIONS = [
    (path, option)
    for path, command in {"penstock": cli, **COMMANDS}.items()
    for parameter in command.params
    if isinstance(parameter, click.Option)
    for option in parameter.opts
]
ERRORS = [
    name
    for name, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, errors.PenstockError)
]
ACTIONS = sorted(
    {
        action
        for path in (ROOT / "src").rglob("*.py")
        for action in ACTION.findall(path.read_text())
    }
)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_its_section(path: str) -> None:
    assert re.search(rf"^##+ {path}$", page("cli.md"), re.MULTILINE)


@pytest.mark.parametrize(("path", "option"), OPTIONS)
def test_every_option_is_in_its_commands_section(path: str, option: str) -> None:
    assert f"| `{option}" in section(path) or f", `{option}" in section(path)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_documented(name: str) -> None:
    assert f"| `{name}` |" in page("errors.md")


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_drawn_in_the_tree(name: str) -> None:
    assert re.search(rf"\b{name}\b", errors.__doc__ or "")


@pytest.mark.parametrize("action", ACTIONS)
def test_every_log_action_is_documented(action: str) -> None:
    assert f"| `{action}` |" in page("logging.md")


def test_no_action_is_documented_that_is_never_logged() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page("logging.md"), re.MULTILINE)

    assert sorted(rows) == ACTIONS


def test_no_error_is_documented_that_is_never_raised() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page("errors.md"), re.MULTILINE)

    assert sorted(rows) == sorted(ERRORS)


def test_no_option_is_documented_that_is_not_there() -> None:
    for path in {"penstock": cli, **COMMANDS}:
        said = set(re.findall(r"^\| .*?`(--[a-z-]+)", section(path), re.MULTILINE))
        known = {option for owner, option in OPTIONS if owner == path}
        assert said <= {*known, "--help"}, path


def section(path: str) -> str:
    """The text on one command; on the whole, what stands in front of all others."""
    text = page("cli.md")
    if path == "penstock":
        return text.split("\n## ")[0]
    return re.split(rf"^##+ {path}$", text, flags=re.MULTILINE)[1].split("\n##")[0]


def page(name: str) -> str:
    return (DOCS / name).read_text()
