"""Documentation says everything there is: commands, options, errors, actions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from penstock import errors
from penstock.cli.main import cli
from penstock.http.access import Access
from penstock.http.options import HttpOptions
from penstock.http.routes import ROUTES, SPECIAL

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
ACTION = re.compile(r'"action": *"(\w+)"')


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in sorted(group.list_commands(context)):
        command = group.get_command(context, name)
        assert command is not None
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


def test_every_command_has_its_section() -> None:
    said = set(re.findall(r"^##+ (penstock .+)$", page("cli.md"), re.MULTILINE))

    assert not COMMANDS.keys() - said


@pytest.mark.parametrize("path", ["penstock", *COMMANDS])
def test_every_option_is_in_its_commands_section(path: str) -> None:
    text = section(path)
    options = [option for owner, option in OPTIONS if owner == path]

    assert not [
        one for one in options if f"| `{one}" not in text and f", `{one}" not in text
    ]


def test_every_error_is_drawn_in_the_tree() -> None:
    drawn = set(re.findall(r"\w+", errors.__doc__ or ""))

    assert not set(ERRORS) - drawn


def test_the_actions_that_are_documented_are_those_that_are_logged() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page("logging.md"), re.MULTILINE)

    assert sorted(rows) == ACTIONS


def test_the_errors_that_are_documented_are_those_that_are_raised() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page("errors.md"), re.MULTILINE)

    assert sorted(rows) == sorted(ERRORS)


def test_no_option_is_documented_that_is_not_there() -> None:
    for path in {"penstock": cli, **COMMANDS}:
        said = set(re.findall(r"^\| .*?`(--[a-z-]+)", section(path), re.MULTILINE))
        known = {option for owner, option in OPTIONS if owner == path}
        assert said <= {*known, "--help"}, path


ROUTED = [
    *((one.method, one.path, one.access) for one in ROUTES),
    *(
        (getattr(one, "method", "GET"), one.path, one.access)  # a WebSocket is a GET
        for one in SPECIAL
    ),
    ("GET", "/openapi.json", Access.NONE),
]


def test_every_route_is_documented_with_its_access() -> None:
    text = page("http.md")

    assert not [
        (method, path)
        for method, path, access in ROUTED
        if f"| `{method} {path}` | {access.name.lower()} |" not in text
    ]


def test_no_route_is_documented_that_is_not_there() -> None:
    said = re.findall(r"^\| `([A-Z]+) (/[^`]*)` \|", page("http.md"), re.MULTILINE)

    assert sorted(said) == sorted((method, path) for method, path, _ in ROUTED)


@pytest.mark.parametrize("name", [one.name for one in fields(HttpOptions)])
def test_every_setting_of_http_is_on_its_page(name: str) -> None:
    limits = page("http.md").split("\n## Limits")[1]

    assert re.search(rf"^\| .*`{name}`.* \|", limits, re.MULTILINE)


def section(path: str) -> str:
    """The text on one command; on the whole, what stands in front of all others."""
    text = page("cli.md")
    if path == "penstock":
        return text.split("\n## ")[0]
    return re.split(rf"^##+ {path}$", text, flags=re.MULTILINE)[1].split("\n##")[0]


def page(name: str) -> str:
    return (DOCS / name).read_text()


def test_no_page_installs_a_package_by_its_name() -> None:
    """One of that name in an index may be somebody else's."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        assert not re.search("pip install '?penstock", page.read_text()), page
