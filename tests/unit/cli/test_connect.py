from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from penstock.cli import connect as connecting
from penstock.cli import output
from penstock.cli.main import cli
from penstock.cli.refusal import Refusal
from tests.local_server import local_server
from tests.unit.cli.desk_run import DeskRun

PASSWORDS = {"anna": "secret"}


def invoke(*arguments: str, **more: Any) -> Result:
    return CliRunner().invoke(cli, arguments, **more)


def test_an_option_may_stand_before_or_behind_the_subcommand(run: DeskRun) -> None:
    run.client.publish("t", b"0")
    data = str(run.server.data)

    before = invoke("topics", "--data", data, "--json", "show", "t")
    behind = invoke("topics", "show", "t", "--data", data, "--json")

    assert before.exit_code == behind.exit_code == 0
    assert before.stdout == behind.stdout
    assert before.stdout.startswith('{"name":"t",')


def test_without_a_server_the_command_says_where_it_looked(tmp_path: Path) -> None:
    result = invoke("topics", "--data", str(tmp_path))

    assert result.exit_code == 2
    assert result.stderr == (
        f"error: no server for data directory {tmp_path}: nothing listens there\n"
        "hint: start one with 'penstock serve', or say where it is: "
        "--data or --server\n"
    )


def test_the_directory_is_the_one_that_serve_would_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    result = invoke("topics")

    assert "data directory penstock-data" in result.stderr


def test_a_server_that_starts_just_now_is_waited_for_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = threading.Event()
    monkeypatch.setattr(connecting, "START_S", 60.0)
    monkeypatch.setattr(connecting, "SILENT_S", 0.0)
    monkeypatch.setattr(connecting, "LOOK_S", 0.01)
    told = output.say

    def say(text: str, **more: Any) -> None:
        told(text, **more)
        began.set()

    monkeypatch.setattr(connecting, "say", say)
    data = tmp_path / "data"

    def serve() -> None:
        assert began.wait(60)
        with local_server(data):
            assert done.wait(60)

    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve)
        result = invoke("publish", "t", "hi", "--data", str(data))
        done.set()
        serving.result()

    assert (result.exit_code, result.stdout) == (
        0,
        "published 1 event to t, last offset 0\n",
    )
    assert result.stderr == f"waiting for a server at data directory {data} …\n"


def test_what_is_wrong_with_an_address_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "START_S", 3600.0)

    result = invoke("publish", "t", "hi", "--server", "no.such.host.invalid:8410")

    assert "no server for no.such.host.invalid:8410" in result.stderr


def test_the_server_may_be_named_by_the_environment(run: DeskRun) -> None:
    env = {"PENSTOCK_SERVER": "127.0.0.1:1"}

    named = invoke("topics", env=env)
    nearer = invoke("topics", "--server", "127.0.0.1:2", env=env)
    data = invoke("topics", "--data", str(run.server.data), env=env)

    assert "no server for 127.0.0.1:1" in named.stderr
    assert "no server for 127.0.0.1:2" in nearer.stderr
    assert data.exit_code == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--data", "d", "--server", "h:1"], "--data and --server exclude each other"),
        (["--server", "h"], "must be HOST:PORT"),
        (["--server", "127.0.0.1:1"], "no server for 127.0.0.1:1"),
        (["--password-file", "f"], "--password-file needs --user"),
    ],
)
def test_a_wrong_address_is_one_line(options: list[str], text: str) -> None:
    result = invoke("topics", *options)

    assert (result.exit_code, result.stdout) == (2, "")
    assert text in result.stderr


def test_a_password_comes_from_a_file_or_is_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\nrest\n")
    with local_server(tmp_path / "data", PASSWORDS) as server:
        options = ["--data", str(server.data), "--user", "anna"]

        read = invoke("topics", *options, "--password-file", str(file))
        asked = invoke("topics", *options, input="secret\n")
        wrong = invoke("topics", *options, input="x\n")

    assert (read.exit_code, asked.exit_code, wrong.exit_code) == (0, 0, 2)
    assert "error: login refused: wrong password for anna" in wrong.stderr
    assert "secret" not in asked.output


def test_the_hint_of_the_server_is_shown(run: DeskRun) -> None:
    run.client.publish("t", b"0")
    run.client.subscribe("t", "me", order="priority").close()

    said = run.refused("subscribe", "t", "--as", "me", "--count", "1")

    assert "hint: use another subscriber name" in said


@pytest.mark.parametrize(("answer", "done"), [("y\n", True), ("n\n", False)])
def test_on_a_terminal_somebody_is_asked(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch, answer: str, done: bool
) -> None:
    run.client.publish("t", b"0")
    monkeypatch.setattr(connecting, "_is_terminal", lambda: True)

    result = run("topics", "delete", "t", input=answer.encode())

    assert (result.exit_code == 0) is done
    assert "Delete topic t with 1 event and 0 subscriptions?" in result.stderr
    assert (run.ask("topics")["topics"] == []) is done


def test_without_a_terminal_yes_is_needed() -> None:
    with pytest.raises(Refusal, match=r"^Sure\? There is no terminal to ask at$"):
        connecting.confirm("Sure?", yes=False)
    connecting.confirm("Sure?", yes=True)


def test_who_does_it_is_the_user_or_else_somebody_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr("getpass.getuser", lambda: "bert")
    assert connecting.who() == "bert"
    monkeypatch.setattr("getpass.getuser", nobody)
    assert connecting.who().startswith("uid ")
    context = click.Context(cli)
    context.params["user"] = "anna"
    with context:
        assert connecting.who() == "anna"
