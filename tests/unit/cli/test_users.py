from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.access.grants import Rule
from penstock.cli.main import cli
from penstock.server import password
from penstock.server.users_file import read_users, set_password, set_rules


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password, "COST_N", 2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "users"


def test_a_password_is_asked_for_twice(path: Path) -> None:
    result = run("add", "Anna", "--file", path, typed="geheim\ngeheim\n")

    assert result.exit_code == 0
    assert result.stdout == f"added anna to {path}\n"
    assert "geheim" not in result.output
    assert read_users(path)["anna"].password.matches("geheim")


def test_two_passwords_that_differ_are_asked_for_again(path: Path) -> None:
    run("add", "anna", "--file", path, typed="one\ntwo\nthree\nthree\n")

    assert read_users(path)["anna"].password.matches("three")


def test_a_prompt_that_gets_no_answer_is_refused(path: Path) -> None:
    result = run("add", "anna", "--file", path, typed="")

    assert result.exit_code == 2
    assert "error: no password was given\n" in result.stderr
    assert "hint: in scripts, use --password-stdin\n" in result.stderr
    assert not path.exists()


@pytest.mark.parametrize("typed", ["geheim\n", "geheim\r\n", "geheim", "geheim\nx\n"])
def test_a_script_gives_the_password_on_standard_input(path: Path, typed: str) -> None:
    result = run("add", "anna", "--file", path, "--password-stdin", typed=typed)

    assert result.output == f"added anna to {path}\n"
    assert read_users(path)["anna"].password.matches("geheim")


def test_adding_again_changes_the_password(path: Path) -> None:
    set_password(path, "anna", "old")

    result = run("add", "ANNA", "--file", path, "--password-stdin", typed="new\n")

    assert result.output == f"changed the password of anna in {path}\n"
    assert read_users(path)["anna"].password.matches("new")


def test_a_user_is_removed(path: Path) -> None:
    set_password(path, "anna", "x")

    result = run("remove", "Anna", "--file", path)

    assert result.output == f"removed anna from {path}\n"
    assert read_users(path) == {}


def test_what_was_done_is_an_object_in_json(path: Path) -> None:
    add = ["add", "Anna", "--file", str(path), "--password-stdin", "--json"]

    results = [
        run(*add, typed="old\n"),
        run(*add, typed="new\n"),
        run("remove", "ANNA", "--file", path, "--json"),
    ]

    assert [json.loads(one.stdout) for one in results] == [
        {"user": "anna", "file": str(path), "done": done}
        for done in ("added", "changed", "removed")
    ]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("anne", "did you mean anna?"), ("xyz", "penstock users list names them all")],
)
def test_a_user_who_is_not_there_is_not_removed(
    path: Path, name: str, hint: str
) -> None:
    set_password(path, "anna", "x")

    result = run("remove", name, "--file", path)

    said = f"error: user {name} is not in {path}\nhint: {hint}\n"
    assert (result.stderr, result.exit_code) == (said, 2)


def test_users_are_listed_in_order(path: Path) -> None:
    for name in ("bert", "Anna"):
        set_password(path, name, "x")

    for name in ("cora", "dora"):
        set_password(path, name, "x")
    set_rules(path, "bert", [Rule("read", "a")])
    set_rules(path, "cora", [], admin=True)
    set_rules(path, "dora", [])

    may = {
        "anna": "publish, subscribe, read",
        "bert": "1 rule",
        "cora": "administer",
        "dora": "0 rules",
    }
    lines = run("list", "--file", path).stdout.splitlines()
    assert [tuple(line.split(maxsplit=1)) for line in lines] == list(may.items())
    found = json.loads(run("list", "--file", path, "--json").stdout)
    assert found == [{"user": name, "may": what} for name, what in may.items()]


def test_the_file_may_be_that_of_the_settings(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SERVER_USERS_FILE", str(path))

    run("add", "anna", "--password-stdin", typed="x\n")

    assert run("list").stdout.split()[0] == "anna"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["list"],
            (
                "error: there is no users file\n"
                "hint: give --file PATH, or set users_file in [server]\n"
            ),
        ),
        (["list", "--file", "none"], "error: none: No such file or directory\n"),
        (["remove", "a", "--file", "none"], "error: none: No such file or directory\n"),
        (
            ["add", "a b", "--file", "none"],
            "error: user 'a b': the name has white space or control characters\n",
        ),
        (
            ["add", "a", "--file", "none", "--password-stdin"],
            "error: user 'a': the password is empty\n",
        ),
        (
            ["list", "--file", "bad"],
            (
                "error: users file bad, line 1: "
                "there is no ':' between name and password\n"
                "hint: a line is 'name:scrypt$…', as 'penstock users add' writes it\n"
            ),
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("rubbish")

    result = run(*arguments)

    assert (result.stdout, result.stderr, result.exit_code) == ("", said, 2)


def run(*arguments: str | Path, typed: str = "") -> Result:
    return CliRunner().invoke(cli, ["users", *map(str, arguments)], input=typed)


def test_a_user_may_be_added_who_has_a_certificate_and_no_password(path: Path) -> None:
    result = run("add", "Sensor", "--file", path, "--certificate")
    again = run("add", "sensor", "--file", path, "--certificate")
    both = run("add", "x", "--file", path, "--certificate", "--password-stdin")

    assert result.stdout == f"added sensor to {path}\n"
    assert again.stdout == f"changed the way in of sensor in {path}\n"
    assert both.exit_code == 2
    assert path.read_text() == "sensor:certificate\n"
