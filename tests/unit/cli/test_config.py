from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from penstock.cli.config import config
from penstock.config import load
from penstock.config.tree import SETTINGS
from penstock.config.values import from_text


def test_every_setting_is_shown_with_its_value_and_origin() -> None:
    heading, *lines = show("--line-port", "0", "--no-maze").stdout.splitlines()

    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in lines}
    assert heading.split() == ["SETTING", "VALUE", "FROM"]
    assert list(rows) == list(SETTINGS)
    assert rows["listen.line_port"] == ["0", "flag --line-port"]
    assert rows["listen.maze_event_port"] == ["off", "flag --no-maze"]
    assert rows["line.max_line_bytes"] == ["1MiB", "default"]


def test_columns_are_aligned() -> None:
    heading, *lines = show().stdout.splitlines()

    at = heading.index("FROM")
    assert {line[at:] for line in lines} == {"default"}
    assert {line[at - 1] for line in lines} == {" "}


def test_what_is_shown_can_be_given() -> None:
    settings = load(environ={})

    for line in show().stdout.splitlines()[1:]:
        key, text, _ = line.split()
        setting = SETTINGS[key]
        value = from_text(setting.kind, text, is_size=setting.is_size)
        assert value == getattr(getattr(settings, setting.table), setting.name)


def test_json_has_plain_values() -> None:
    found = json.loads(show("--json", "--no-line").stdout)

    assert found["listen"]["line_port"] == {"value": None, "from": "flag --no-line"}
    assert found["line"]["max_line_bytes"] == {"value": 1 << 20, "from": "default"}
    assert {f"{table}.{key}" for table in found for key in found[table]} == set(
        SETTINGS
    )


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_CONFIG", raising=False)


def show(*arguments: str) -> Result:
    result = CliRunner().invoke(config, ["show", *arguments])
    assert result.exit_code == 0, result.output
    return result
