from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import penstock
from penstock.cli.main import cli
from penstock.http.key_file import KeyFile


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyFile:
    """The tokens of a directory that the settings name."""
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path))
    file = KeyFile(tmp_path)
    file.begin(0)
    return file


def run(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["token", *arguments], input=typed)


@pytest.mark.parametrize("arguments", [[], ["show"]])
def test_the_admin_token_is_shown(file: KeyFile, arguments: list[str]) -> None:
    result = run(*arguments)

    assert result.stdout == f"{file.admin_token()}\n"
    assert result.exit_code == 0


def test_it_is_shown_as_an_address_and_as_json(file: KeyFile) -> None:
    token = file.admin_token()
    link = f"http://127.0.0.1:8420/#token={token}"

    assert run("show", "--link").stdout == f"{link}\n"
    for arguments in (["--json"], ["show", "--json"]):
        told = json.loads(run(*arguments).stdout)
        assert told == {"name": "admin", "token": token, "link": link}


def test_a_program_with_a_broker_of_its_own_has_no_port(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data"):
        KeyFile(tmp_path / "data").begin(0)
        result = run("show", "--link", "--data", str(tmp_path / "data"))

    assert result.stdout.startswith("http://127.0.0.1:8420/#token=")


@pytest.mark.parametrize("before", [True, False])
def test_the_directory_may_be_said_anywhere(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch, *, before: bool
) -> None:
    monkeypatch.delenv("PENSTOCK_DATA")
    data = ["--data", str(file.directory)]

    result = run(*data, "show") if before else run("show", *data)

    assert result.stdout == f"{file.admin_token()}\n"


def test_a_token_that_cannot_be_shown_is_not(file: KeyFile) -> None:
    file.admin_path.unlink()

    result = run()

    assert result.exit_code == 2
    assert "holds no admin token" in result.stderr
    assert "penstock token renew" in result.stderr


def test_a_directory_that_is_not_there_is_named() -> None:
    result = run("--data", "nowhere")

    assert result.exit_code == 2
    assert result.stderr.startswith("error: nowhere is not there\n")


def test_renewing_makes_another_one(file: KeyFile) -> None:
    before = file.admin_token()

    result = run("renew")

    assert result.stdout == f"{file.admin_token()}\n"
    assert file.admin_token() != before


@pytest.mark.parametrize(
    ("arguments", "scope", "publish", "subscribe"),
    [
        ([], "admin", (), ()),
        (["--scope", "read"], "read", (), ()),
        (["--publish", "a", "--publish", "b/*"], "topics", ("a", "b/*"), ()),
        (["--scope", "topics", "--subscribe", "c"], "topics", (), ("c",)),
    ],
)
def test_a_token_is_made_and_shown_once(
    file: KeyFile,
    arguments: list[str],
    scope: str,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...],
) -> None:
    result = run("add", "x", *arguments)

    key = file.read()["x"]
    assert key.fits(result.stdout.strip())
    assert (key.scope, key.publish, key.subscribe) == (scope, publish, subscribe)
    assert key.expires_ms is None


def test_a_token_may_end(file: KeyFile) -> None:
    told = json.loads(run("add", "x", "--days", "0.5", "--json").stdout)

    key = file.read()["x"]
    assert key.fits(told["token"])
    assert key.expires_ms == key.made_ms + 12 * 3600 * 1000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "admin"], "there is one of that name already"),
        (["add", "x", "--scope", "read", "--publish", "t"], "has no topics to name"),
        (["add", "x", "--days", "0"], "0"),
        (["add", "x", "--scope", "root"], "root"),
        (["remove", "admn"], "did you mean admin?"),
        (["remove", "zzz"], "penstock token list names them all"),
        (["remove", "admin"], "say --yes"),
    ],
)
def test_what_makes_no_sense_is_refused(
    file: KeyFile, arguments: list[str], said: str
) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert list(file.read()) == ["admin"]


def test_tokens_are_listed_without_their_secrets(file: KeyFile) -> None:
    made = run("add", "shop", "--publish", "a", "--subscribe", "b", "--days", "1")

    table, rows = run("list").stdout, json.loads(run("list", "--json").stdout)

    assert "shop   topics  publish a, subscribe b" in table
    assert table.splitlines()[1].endswith("never")
    assert [row["name"] for row in rows] == ["admin", "shop"]
    assert made.stdout.strip() not in table + json.dumps(rows)
    assert "hash" not in json.dumps(rows)


def test_a_token_is_removed(file: KeyFile) -> None:
    run("add", "x")

    assert run("remove", "x").stdout == "removed x\n"
    assert (
        json.loads(run("remove", "admin", "--yes", "--json").stdout)["name"] == "admin"
    )
    assert file.read() == {}
