from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli import connect as subject
from penstock.cli.connect import listeners, own_token
from penstock.client.address import Remote, is_loopback
from penstock.http.key_file import KeyFile

STRANGER = 4242
HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid\n"
)
ROW = (
    "   0: {}:{:04X} 00000000:0000 {} 00000000:00000000 00:00000000 00000000 {} 0 1 1\n"
)
LISTENS, TALKS = "0A", "01"
LOOPBACK, ANY, ANY_6 = "0100007F", "00000000", "0" * 32


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def tables(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *rows: tuple[str, int, str, int]
) -> None:
    """Have the system say this of its sockets."""
    path = folder / "tcp"
    path.write_text(HEAD + "".join(ROW.format(*row) for row in rows))
    monkeypatch.setattr(subject, "TABLES", (path, folder / "none"))


def test_the_system_knows_who_listens(port: int) -> None:
    assert set(listeners(port)) == {os.getuid()}


def test_nobody_listens_at_a_port_that_is_free() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))  # and does not listen
        assert list(listeners(one.getsockname()[1])) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_the_token_is_for_our_own_listener(
    tmp_path: Path, port: int, host: str
) -> None:
    token = KeyFile(tmp_path).begin(0)

    assert own_token(Remote(host, port), str(tmp_path)) == token is not None


def test_there_may_be_no_token(tmp_path: Path, port: int) -> None:
    where = Remote("127.0.0.1", port)

    assert own_token(where, str(tmp_path)) is None
    assert own_token(where, str(tmp_path / "none")) is None
    KeyFile(tmp_path).begin(0)
    (tmp_path / "http-tokens.json").write_text("nonsense")
    assert own_token(where, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([], False),
        ([(LOOPBACK, 8410, LISTENS, 0)], True),
        ([(ANY, 8410, LISTENS, os.getuid())], True),
        ([(LOOPBACK, 8410, LISTENS, STRANGER)], False),
        ([(ANY_6, 8410, LISTENS, STRANGER)], False),
        ([(ANY, 8410, LISTENS, 0), (LOOPBACK, 8410, LISTENS, STRANGER)], False),
        ([(ANY, 8410, LISTENS, 0), (LOOPBACK, 8411, LISTENS, STRANGER)], True),
        ([(ANY, 8410, LISTENS, 0), (LOOPBACK, 8410, TALKS, STRANGER)], True),
        ([(ANY, 8410, TALKS, 0)], False),
    ],
)
def test_a_stranger_at_the_port_is_not_shown_the_token(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: list[tuple[str, int, str, int]],
    shown: bool,
) -> None:
    token = KeyFile(tmp_path).begin(0)
    tables(monkeypatch, tmp_path, *rows)

    found = own_token(Remote("127.0.0.1", 8410), str(tmp_path))

    assert found == (token if shown else None)


def test_the_owner_of_the_token_may_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid() != 0:
        pytest.skip("component: root, to read the token of another account")
    token = KeyFile(tmp_path).begin(0)
    os.chown(tmp_path / "http-admin-token", STRANGER, -1)
    tables(monkeypatch, tmp_path, (LOOPBACK, 8410, LISTENS, STRANGER))

    assert own_token(Remote("127.0.0.1", 8410), str(tmp_path)) == token


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_only_loopback_is_loopback(host: str, here: bool, tmp_path: Path) -> None:
    KeyFile(tmp_path).begin(0)

    assert is_loopback(host) is here
    if not here:
        assert own_token(Remote(host, 1), str(tmp_path)) is None
