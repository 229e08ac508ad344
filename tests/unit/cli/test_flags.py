from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from penstock.cli.flags import HELP, SWITCHES, VALUES, flags_of, setting_flags
from penstock.cli.refusal import Refusal
from penstock.config import Flag
from penstock.config.tree import SETTINGS

NAMES = [*VALUES, *SWITCHES, "--config"]
NOTHING: dict[str, Any] = {
    **{name.strip("-").replace("-", "_"): None for name in VALUES},
    **{name.strip("-").replace("-", "_"): False for name in SWITCHES},
}


def test_a_command_has_all_flags_and_gets_what_was_given() -> None:
    got: dict[str, Any] = {}

    result = invoke(got, "--data", "d", "--no-maze", "--config", "c")

    assert result.exit_code == 0
    assert got == {**NOTHING, "data": "d", "no_maze": True, "config": "c"}


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_is_in_the_help(name: str) -> None:
    assert f"  {name}" in invoke({}, "--help").output


@pytest.mark.parametrize("name", VALUES)
def test_every_flag_belongs_to_a_setting_and_has_a_help_text(name: str) -> None:
    assert VALUES[name][0] in SETTINGS
    assert HELP[name]


def test_every_port_that_is_on_can_be_switched_off_by_one_flag() -> None:
    ports = [port for ports, _ in SWITCHES.values() for port in ports]

    assert sorted(ports) == sorted(
        name
        for name, (key, _) in VALUES.items()
        if name.endswith("-port") and SETTINGS[key].default is not None
    )


def test_what_was_not_given_is_no_flag() -> None:
    assert list(flags_of(NOTHING)) == []


def test_what_was_given_is_a_flag_even_if_empty() -> None:
    flags = list(flags_of({**NOTHING, "host": "", "line_port": "0"}))

    assert flags == [
        Flag("server.host", "--host", ""),
        Flag("listen.line_port", "--line-port", "0"),
    ]


def test_a_gateway_is_switched_off_with_all_of_its_ports() -> None:
    flags = list(flags_of({**NOTHING, "no_json": True}))

    assert flags == [
        Flag("listen.consumer_port", "--no-json", "off"),
        Flag("listen.publisher_port", "--no-json", "off"),
    ]


@pytest.mark.parametrize(
    ("switch", "port"),
    [(switch, port) for switch, (ports, _) in SWITCHES.items() for port in ports],
)
def test_a_gateway_is_not_switched_off_and_given_a_port(switch: str, port: str) -> None:
    given = {name.strip("-").replace("-", "_"): "1" for name in (switch, port)}

    with pytest.raises(Refusal) as caught:
        list(flags_of({**NOTHING, **given}))

    assert caught.value.message == f"{port} and {switch} exclude each other"


def invoke(got: dict[str, Any], *arguments: str) -> Result:
    command = click.command()(setting_flags(lambda **given: got.update(given)))
    return CliRunner().invoke(command, arguments, terminal_width=200)
