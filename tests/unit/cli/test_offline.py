from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from penstock.broker.broker import Broker
from penstock.cli.main import cli
from penstock.cli.offline import offline
from penstock.errors import DirectoryLocked, NotADataDirectory, UnknownVerb
from penstock.gateway.maze import MazeState
from penstock.log import Log
from tests.unit.cli.desk_run import desk_run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory that a server has left: dead letters 0 and 1 of ``me``."""
    directory = tmp_path / "data"
    with desk_run(directory) as run:
        run.bury("t", "me", b"zero", b"one")
    return directory


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_the_desk_works_on_the_files(data: Path) -> None:
    listed = invoke("dead-letters", "list", "--data", str(data), "--json")
    done = invoke("dead-letters", "republish", "1", "--data", str(data))
    again = invoke("dead-letters", "list", "--data", str(data), "--json")

    assert [one["number"] for one in json.loads(listed.stdout)] == [0, 1]
    note = f"note: no server is running on {data}: working on its files\n"
    assert listed.stderr == done.stderr == note
    assert done.stdout == "dead letter 1: republished\n"
    assert [one["number"] for one in json.loads(again.stdout)] == [0]


def test_what_was_done_offline_is_there_when_it_is_opened_again(data: Path) -> None:
    invoke("dead-letters", "republish", "--all", "--data", str(data))

    with opened(data) as broker:
        assert len(broker.subscription("me", "t").owed) == 2


@pytest.mark.parametrize(
    "command",
    [
        ["topics"],
        ["topics", "show", "t"],
        ["subscriptions"],
        ["logs", "t"],
        ["errors"],
        ["dead-letters", "show", "0"],
        ["dead-letters", "audit"],
        ["topics", "create", "new"],
        ["topics", "delete", "t", "--yes"],
    ],
)
def test_every_question_is_answered(data: Path, command: list[str]) -> None:
    result = invoke(*command, "--data", str(data))

    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("command", [["publish", "t", "x"], ["subscribe", "t"]])
def test_publishing_and_consuming_need_a_server(data: Path, command: list[str]) -> None:
    result = invoke(*command, "--data", str(data))

    assert result.exit_code == 2
    assert "nothing listens there" in result.stderr


def test_a_login_needs_a_server(data: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")

    result = invoke(
        *("topics", "--data", str(data), "--user", "anna"),
        *("--password-file", str(password)),
    )

    assert result.exit_code == 2
    assert "nothing listens there" in result.stderr


def test_a_directory_of_another_process_is_left_alone(data: Path) -> None:
    with opened(data):
        result = invoke("topics", "--data", str(data))

        assert (result.exit_code, result.stdout) == (2, "")
        assert str(os.getpid()) in result.stderr
        with pytest.raises(DirectoryLocked), offline(str(data)):
            pass


def opened(data: Path) -> Broker:
    kept = [MazeState()]
    return Broker(partial(Log.open, data, create=False), kept=kept)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_nothing_is_created_where_nothing_is(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    directory = tmp_path / name

    result = invoke("topics", "--data", str(directory))

    assert result.exit_code == 2
    assert "nothing listens there" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty"]
    assert list((tmp_path / "empty").iterdir()) == []
    with pytest.raises(NotADataDirectory), offline(str(directory)):
        pass


def test_an_unknown_verb_is_refused(data: Path) -> None:
    with offline(str(data)) as desk, pytest.raises(UnknownVerb):
        desk.ask("no-such-thing")
