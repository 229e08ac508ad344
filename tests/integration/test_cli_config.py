"""Settings and users as a person meets them: real files and environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from penstock.server.users import Users
from tests.command import penstock

ROOT = Path(__file__).resolve().parent.parent.parent

Run = subprocess.CompletedProcess[str]


def test_each_source_counts_more_than_the_one_before(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        "[listen]\nline_port = 1\nconsumer_port = 2\nmaze_event_port = 'off'\n"
        "[line]\nmax_line_bytes = '64KiB'\n"
    )

    result = run(
        tmp_path,
        *("config", "show", "--line-port", "9", "--json"),
        PENSTOCK_CONFIG="penstock.toml",
        PENSTOCK_LISTEN_CONSUMER_PORT="5",
        PENSTOCK_LISTEN_LINE_PORT="6",
    )

    found = json.loads(result.stdout)
    listen = found["listen"]
    assert listen["line_port"] == {"value": 9, "from": "flag --line-port"}
    assert listen["consumer_port"] == {
        "value": 5,
        "from": "environment PENSTOCK_LISTEN_CONSUMER_PORT",
    }
    assert listen["maze_event_port"] == {"value": None, "from": "file penstock.toml"}
    assert found["line"]["max_line_bytes"]["value"] == 65536
    assert listen["native_port"] == {"value": 8410, "from": "default"}


@pytest.mark.parametrize("command", [["serve"], ["config", "show"]])
def test_a_misspelt_setting_starts_nothing(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "penstock.toml").write_text("[server]\ndta = 'here'\n")

    result = run(tmp_path, *command, "--config", "penstock.toml")

    assert result.stderr == (
        "error: file penstock.toml: unknown setting server.dta, "
        "did you mean server.data?\n"
        "hint: docs/configuration.md lists every setting\n"
    )
    assert (result.stdout, result.returncode) == ("", 2)
    assert names(tmp_path) == ["penstock.toml"]


def test_a_server_for_everybody_is_refused_before_anything_is_made(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, "serve", PENSTOCK_HOST="0.0.0.0")

    assert result.returncode == 2
    assert result.stderr.startswith("error: host 0.0.0.0 can be reached")
    assert names(tmp_path) == []


def test_users_added_by_the_command_can_log_in(tmp_path: Path) -> None:
    path = tmp_path / "users"

    added = run(
        tmp_path,
        *("users", "add", "Anna", "--password-stdin"),
        typed="geheim\n",
        PENSTOCK_SERVER_USERS_FILE="users",
    )
    users = Users.load(path)

    assert added.stdout == "added anna to users\n"
    assert users.check("anna", "geheim")
    assert not users.check("anna", "falsch")

    run(tmp_path, "users", "remove", "anna", "--file", "users")

    assert not users.check("anna", "geheim")


def test_the_example_of_the_documentation_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    example = page.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "penstock.toml").write_text(example)

    result = run(tmp_path, "config", "show", "--config", "penstock.toml", "--json")

    found = json.loads(result.stdout)
    assert found["topics"]["retention_bytes"]["value"] == 10 << 30
    assert found["server"]["users_file"]["from"] == "file penstock.toml"


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def run(folder: Path, *arguments: str, typed: str = "", **variables: str) -> Run:
    clean = {name: None for name in os.environ if name.startswith("PENSTOCK_")}
    done = penstock(
        *arguments, input=typed.encode(), cwd=folder, env={**clean, **variables}
    )
    output = done.stdout.decode(), done.stderr.decode()
    return Run(arguments, done.returncode, *output)
