from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.broker.access import Rule
from penstock.cli.main import cli
from penstock.server import password
from penstock.server.users_file import read_users, set_password, set_rules

SENSORS, TEMP = Rule("publish", "sensors/#"), Rule("publish", "+/temp")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    set_password(path, "anna", "x")
    return path


def rules(path: Path) -> tuple[Rule, ...] | None:
    return read_users(path)["anna"].grants.rules


def run(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["users", *arguments, "--file", str(path)])


def test_the_first_rule_ends_that_everything_is_allowed(path: Path) -> None:
    result = run(path, "allow", "Anna", "publish", "sensors/#", "+/temp")

    assert result.stdout == (
        "anna may publish sensors/#\nanna may publish +/temp\n"
        "anna has rules now, and may do nothing else\n"
    )
    assert rules(path) == (SENSORS, TEMP)


def test_a_rule_is_added_once(path: Path) -> None:
    set_rules(path, "anna", [SENSORS])

    run(path, "allow", "anna", "publish", "sensors/#")
    result = run(path, "allow", "anna", "publish", "+/temp")

    assert result.stdout == "anna may publish +/temp\n"
    assert rules(path) == (SENSORS, TEMP)


def test_everything_removes_all_rules(path: Path) -> None:
    set_rules(path, "anna", [SENSORS])

    result = run(path, "allow", "anna", "everything")

    assert result.stdout == "anna may do everything\n"
    assert rules(path) is None


def test_a_rule_is_taken_away(path: Path) -> None:
    set_rules(path, "anna", [SENSORS, TEMP])

    result = run(path, "deny", "ANNA", "publish", "sensors/#")

    assert result.stdout == "anna may no longer publish sensors/#\n"
    assert rules(path) == (TEMP,)


@pytest.mark.parametrize("arguments", [["publish", "sensors/#"], ["everything"]])
def test_without_the_last_rule_nothing_is_allowed(
    path: Path, arguments: list[str]
) -> None:
    set_rules(path, "anna", [SENSORS])

    result = run(path, "deny", "anna", *arguments)

    assert result.stdout == "anna may nothing\n"
    assert rules(path) == ()


@pytest.mark.parametrize(
    ("given", "shown", "told"),
    [
        (None, "everything\n", None),
        ([], "nothing\n", []),
        (
            [SENSORS, TEMP],
            "publish sensors/#\npublish +/temp\n",
            [
                {"action": "publish", "filter": "sensors/#"},
                {"action": "publish", "filter": "+/temp"},
            ],
        ),
    ],
)
def test_what_a_user_may_do_is_shown(
    path: Path, given: list[Rule] | None, shown: str, told: object
) -> None:
    set_rules(path, "anna", given)

    assert run(path, "show", "Anna").stdout == shown
    found = json.loads(run(path, "show", "anna", "--json").stdout)
    expected = {"user": "anna", "file": str(path), "rules": told, "quota": {}}
    assert found == expected


def test_what_was_done_is_an_object_in_json(path: Path) -> None:
    allowed = run(path, "allow", "anna", "read", "a", "--json")
    denied = run(path, "deny", "anna", "read", "a", "--json")

    one = [{"action": "read", "filter": "a"}]
    assert json.loads(allowed.stdout)["rules"] == one
    assert json.loads(denied.stdout)["rules"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["allow", "anna", "read"], "error: there is no filter of what to read"),
        (["allow", "anna", "read", "a/#/b"], "error: topic filter 'a/#/b' "),
        (["allow", "anna", "everything", "a"], "error: everything takes no filter"),
        (["allow", "anne", "read", "a"], "error: user anne is not in "),
        (["deny", "anna", "publish", "a"], "error: user anna has no rule publish a"),
        (["deny", "anna", "read", "sensors/#"], "error: user anna has no rule read"),
        (["deny", "anna", "everything", "a"], "error: everything takes no filter"),
        (["show", "anne"], "error: user anne is not in "),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    path: Path, arguments: list[str], said: str
) -> None:
    set_rules(path, "anna", [SENSORS])
    before = path.read_bytes()

    result = run(path, *arguments)

    assert result.stderr.startswith(said)
    assert result.exit_code == 2
    assert path.read_bytes() == before


def test_a_user_without_rules_has_none_to_be_denied(path: Path) -> None:
    result = run(path, "deny", "anna", "publish", "a")

    assert result.exit_code == 2
    assert "anna has no rules and may do everything" in result.stderr
    assert rules(path) is None
