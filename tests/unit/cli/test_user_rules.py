from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.access.grants import Grants, Rule
from penstock.cli.main import cli
from penstock.server import password
from penstock.server.users_file import read_users, set_password, set_rules

SENSORS, TEMP = Rule("publish", "sensors/#"), Rule("publish", "+/temp")
JOBS = Rule("subscribe", "in", ("anna", "job-*"))
ALL = "publish, subscribe, read everywhere, not administer"


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

    assert result.stdout == f"anna may {ALL}\n"
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
        (None, f"{ALL}\n", None),
        ([], "nothing\n", []),
        (
            [SENSORS, TEMP],
            "publish sensors/#\npublish +/temp\n",
            [
                {"action": "publish", "filter": "sensors/#", "subscribers": None},
                {"action": "publish", "filter": "+/temp", "subscribers": None},
            ],
        ),
        (
            [JOBS],
            "subscribe in as anna,job-*\n",
            [{"action": "subscribe", "filter": "in", "subscribers": ["anna", "job-*"]}],
        ),
    ],
)
def test_what_a_user_may_do_is_shown(
    path: Path, given: list[Rule] | None, shown: str, told: object
) -> None:
    set_rules(path, "anna", given)

    assert run(path, "show", "Anna").stdout == shown
    found = json.loads(run(path, "show", "anna", "--json").stdout)
    assert found == {
        "user": "anna",
        "file": str(path),
        "admin": False,
        "rules": told,
        "quota": {},
    }


def test_what_was_done_is_an_object_in_json(path: Path) -> None:
    allowed = run(path, "allow", "anna", "read", "a", "--json")
    denied = run(path, "deny", "anna", "read", "a", "--json")

    one = [{"action": "read", "filter": "a", "subscribers": None}]
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
        (["allow", "anna", "administer", "a"], "error: administer takes no filter"),
        (["deny", "anna", "administer"], "error: user anna may not administer anyway"),
        (["allow", "anna", "read", "a", "--as", "b"], "error: --as is for subscribe"),
        (
            ["allow", "anna", "subscribe", "a", "--as", "b*c"],
            "error: subscriber name 'b*c' has a * before its end",
        ),
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
    assert f"anna has no rules: that is {ALL}" in result.stderr
    assert rules(path) is None


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ("anna", "anna-*")),
        (["--as", "*"], ("*",)),
        (["--as", "anna", "--as", "job-*"], ("anna", "job-*")),
    ],
)
def test_a_user_subscribes_under_names_of_its_own_unless_told_otherwise(
    path: Path, options: list[str], names: tuple[str, ...]
) -> None:
    result = run(path, "allow", "Anna", "subscribe", "in", *options)

    assert result.stdout.startswith(f"anna may subscribe in as {','.join(names)}\n")
    assert rules(path) == (Rule("subscribe", "in", names),)
    denied = run(path, "deny", "anna", "subscribe", "in")
    assert denied.stdout == "anna may nothing\n"
    assert rules(path) == ()


@pytest.mark.parametrize("before", [None, (), (SENSORS, JOBS)])
def test_a_role_is_given_and_taken_and_the_rules_stay(
    path: Path, before: tuple[Rule, ...] | None
) -> None:
    set_rules(path, "anna", before)

    given = run(path, "allow", "anna", "administer")
    assert given.stdout == "anna may administer\n"
    assert read_users(path)["anna"].grants.admin
    assert run(path, "show", "anna").stdout.splitlines()[0] == "administer"
    assert json.loads(run(path, "show", "anna", "--json").stdout)["admin"] is True
    assert rules(path) == before

    taken = run(path, "deny", "anna", "administer")
    assert taken.stdout == "anna may no longer administer\n"
    assert not read_users(path)["anna"].grants.admin
    assert rules(path) == before


def test_everything_is_denied_with_the_role(path: Path) -> None:
    run(path, "allow", "anna", "administer")
    assert run(path, "show", "anna").stdout == "administer\neverything\n"

    assert run(path, "deny", "anna", "everything").stdout == "anna may nothing\n"

    assert read_users(path)["anna"].grants == Grants(user="anna", rules=())
