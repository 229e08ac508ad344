"""Who administers a real server: its owner, and whoever has the token or the role.

An account of the same machine may publish and subscribe at the ports of a server
without users, and nothing else.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.client import Client, connect
from penstock.errors import NotAllowed, ServerRefused
from penstock.http.key_file import KeyFile, TokenRequest
from tests.command import Run
from tests.command import penstock as penstock_command
from tests.http_client import token_of
from tests.serving import Serving, serving
from tests.unit.desk.test_access import CHANGING

pytestmark = pytest.mark.slow

NOBODY = 65_534
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("admin"), "--no-maze") as server:
        with native(server) as anybody:
            anybody.publish("t", [b"{}"])
        yield server


def at(server: Serving) -> str:
    return f"127.0.0.1:{server.ports['native']}"


def native(server: Serving, token: str | None = None) -> Client:
    return connect(at(server), token=token)


def run(data: Path, *arguments: str) -> Run:
    """A command of somebody whose data directory is that."""
    return penstock_command(*arguments, env={"PENSTOCK_DATA": str(data)})


@pytest.mark.parametrize(("verb", "said"), CHANGING.items())
def test_a_local_account_changes_nothing_by_the_native_port(
    server: Serving, verb: str, said: dict[str, Any]
) -> None:
    with native(server) as anybody, pytest.raises(ServerRefused) as caught:
        anybody.ask(verb, **said)

    assert caught.value.error == "NotAllowed"
    assert "it needs an administrator" in str(caught.value)
    assert "--token-file" in caught.value.hint


@pytest.mark.parametrize(("verb", "said"), CHANGING.items())
def test_who_has_the_token_or_the_data_directory_may(
    server: Serving, verb: str, said: dict[str, Any]
) -> None:
    where: list[tuple[str | Path, str | None]] = [
        (at(server), token_of(server)),
        (server.data, None),
    ]
    mine = {name: "mine" if one == "t" else one for name, one in said.items()}
    for address, token in where:
        with connect(address, token=token) as owner:
            owner.publish("mine", [b"{}"])
            try:
                owner.ask(verb, **mine)
            except ServerRefused as refused:  # there is no such letter, or session
                assert refused.error not in ("NotAllowed", "LoginRefused")


def test_publishing_subscribing_and_looking_stay_open(server: Serving) -> None:
    with native(server) as anybody:
        anybody.publish("open", [b"x"])
        anybody.ask("topics.create", name="made", compact=True)
        with anybody.subscribe("open", "anybody", start="earliest") as mine:
            assert mine.next(PATIENCE_S) is not None
        anybody.stage("job", 0, 0, 0, "open", [b"y"])
        anybody.ask("sinks.commit", query="job", epoch=0, parts=[(0, 0)])
        anybody.ask("subscriptions.progress", subscriber="s", topic="open", offset=1)
        for verb in ("topics", "subscriptions", "dead-letters", "errors", "overview"):
            assert anybody.ask(verb)


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("pk_nonsense", "the token is not known here"),
        ("", "the token is not known here"),
        ("read", "the token reader is not of scope admin"),
        ("removed", "the token is not known here"),
    ],
)
def test_other_tokens_do_not_come_in(server: Serving, token: str, said: str) -> None:
    file = KeyFile(server.data)
    if token in ("read", "removed"):
        name = "reader" if token == "read" else "former"
        token = file.add(TokenRequest(name=name, scope="read"), 0)
        if name == "former":
            file.remove(name)

    with pytest.raises(ServerRefused, match=said) as caught:
        native(server, token=token)

    assert caught.value.error == "LoginRefused"


def test_a_program_needs_the_token_for_what_changes_a_topic(server: Serving) -> None:
    url = f"penstock://{at(server)}"
    with penstock.open(url) as broker, pytest.raises(NotAllowed):
        broker.ask("topics.delete", name="t")
    with penstock.open(url, token=token_of(server)) as broker:
        broker.ask("topics.create", name="doomed")
        broker.ask("topics.delete", name="doomed")


def test_who_has_the_directory_of_a_program_administers_it(tmp_path: Path) -> None:
    with penstock.open(tmp_path / "data") as own:
        own.publish("t", b"x")
        with penstock.open(f"penstock://{tmp_path / 'data'}") as other:
            other.ask("topics.delete", name="t")


# Commands


def test_a_command_finds_the_token_of_its_own_server(
    server: Serving, tmp_path: Path
) -> None:
    with native(server) as anybody:
        for name in ("one", "two"):
            anybody.ask("topics.create", name=name)
    delete = ("topics", "delete", "--yes", "--server", at(server))

    stranger = run(tmp_path, *delete, "one")
    owner = run(server.data, *delete, "one")
    file = ("--token-file", str(server.data / "http-admin-token"))
    with_file = run(tmp_path, *delete, "two", *file)

    assert stranger.returncode != 0
    assert b"it needs an administrator" in stranger.stderr
    assert b"--data DIR" in stranger.stderr
    assert (owner.returncode, owner.stderr) == (0, b"")
    assert (with_file.returncode, with_file.stderr) == (0, b"")


def test_a_token_of_another_server_is_done_without(
    server: Serving, tmp_path: Path
) -> None:
    KeyFile(tmp_path).begin(0)

    looks = run(tmp_path, "topics", "--server", at(server))
    wrong = ("--token-file", str(tmp_path / "http-admin-token"))
    told = run(server.data, "topics", "--server", at(server), *wrong)

    assert (looks.returncode, looks.stderr) == (0, b"")
    assert told.returncode != 0
    assert b"the token is not known here" in told.stderr


def test_a_token_and_a_user_exclude_each_other(server: Serving) -> None:
    login = ("--user", "anna", "--token-file", "x")

    refused = run(server.data, "topics", "--server", at(server), *login)

    assert refused.returncode == 2
    assert b"--token-file and --user exclude each other" in refused.stderr


@contextmanager
def listening(uid: int) -> Iterator[tuple[int, list[bytes]]]:
    """A listener that belongs to an account, its port, and what it was told."""
    heard: list[bytes] = []
    before = os.geteuid()
    os.seteuid(uid)
    try:
        listener = socket.socket()
    finally:
        os.seteuid(before)
    with listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def listen() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    heard.append(peer.recv(1 << 16))

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield listener.getsockname()[1], heard
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize("whose", ["our own", "somebody else's"])
def test_no_listener_of_another_account_is_shown_the_token(
    tmp_path: Path, whose: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("component: root, to listen as another account")
    token = KeyFile(tmp_path).begin(0)
    assert token is not None

    uid = os.geteuid() if whose == "our own" else NOBODY
    with listening(uid) as (port, heard):
        for host in ("127.0.0.1", "localhost"):
            run(tmp_path, "topics", "--server", f"{host}:{port}")

    assert len(heard) >= 2
    told = any(token.encode() in one for one in heard)
    assert told == (whose == "our own")


def test_a_server_without_http_has_a_token_too(tmp_path: Path) -> None:
    with (
        serving(tmp_path, "--no-maze", "--no-http") as server,
        native(server, token=token_of(server)) as owner,
    ):
        owner.ask("topics.create", name="t")
        owner.ask("topics.delete", name="t")
