from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.access.quota import NONE, Quota
from penstock.cli.main import cli
from penstock.server import password
from penstock.server.users_file import read_users, set_password, set_quota


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    set_password(path, "anna", "x")
    return path


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["users", *arguments, "--file", str(path)])


def test_limits_are_set_and_what_is_not_named_stays(path: Path) -> None:
    run(path, "limit", "anna", "--topics", "3", "--stored-bytes", "10GiB")
    result = run(path, "limit", "Anna", "--events-per-s", "5", "--topics", "4")

    assert result.stdout == "anna has topics=4 events_per_s=5 stored_bytes=10GiB\n"
    expected = Quota(topics=4, events_per_s=5, stored_bytes=10 << 30)
    assert read_users(path)["anna"].quota == expected


def test_off_takes_a_limit_away(path: Path) -> None:
    set_quota(path, "anna", Quota(topics=3, connections=2))

    assert run(path, "limit", "anna", "--topics", "off").stdout == (
        "anna has connections=2\n"
    )
    result = run(path, "limit", "anna", "--connections", "off")

    assert result.stdout == "anna has no limits of its own\n"
    assert read_users(path)["anna"].quota == NONE


def test_limits_are_shown(path: Path) -> None:
    set_quota(path, "anna", Quota(topics=3, bytes_per_s=1 << 20))

    assert run(path, "show", "anna").stdout == (
        "publish, subscribe, read everywhere, not administer\n"
        "topics=3\nbytes_per_s=1MiB\n"
    )
    shown = json.loads(run(path, "show", "anna", "--json").stdout)
    assert shown["quota"] == {"topics": 3, "bytes_per_s": 1 << 20}
    row = json.loads(run(path, "limit", "anna", "--topics", "7", "--json").stdout)
    assert (row["user"], row["quota"]["topics"]) == ("anna", 7)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["anna"], "no limit was given"),
        (["anna", "--topics", "many"], "topics is 'many': must be a whole number"),
        (["anna", "--connections", "0"], "connections is 0"),
        (["bert", "--topics", "1"], "bert"),
    ],
)
def test_what_cannot_be_is_refused(path: Path, arguments: list[str], said: str) -> None:
    result = run(path, "limit", *arguments)

    assert result.exit_code != 0
    assert said in f"{result.stderr}{result.exception}"
    assert read_users(path)["anna"].quota == NONE
