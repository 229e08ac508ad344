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


ROUTED = [
    *((one.method, one.path, one.access) for one in ROUTES),
    *(
        (getattr(one, "method", "GET"), one.path, one.access)  # a WebSocket is a GET
        for one in SPECIAL
    ),
    ("GET", "/openapi.json", Access.NONE),
]


@pytest.mark.parametrize(("method", "path", "access"), ROUTED)
def test_every_route_is_documented_with_its_access(
    method: str, path: str, access: Access
) -> None:
    assert f"| `{method} {path}` | {access.name.lower()} |" in page("http.md")


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
