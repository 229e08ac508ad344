from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.client.address import (
    CLOSED,
    Local,
    Remote,
    address_of,
    not_running,
    reason_of,
    remote,
    socket_path,
)
from penstock.client.tls import Tls
from penstock.errors import InvalidOption


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("localhost:8410", Remote("localhost", 8410), "localhost:8410"),
        ("10.0.0.1:1", Remote("10.0.0.1", 1), "10.0.0.1:1"),
        ("[::1]:8410", Remote("::1", 8410), "[::1]:8410"),
        ("penstock://h", Remote("h", 8410), "h:8410"),
        ("penstock://[::1]:7/", Remote("::1", 7), "[::1]:7"),
        ("penstock+tls://h:7", Remote("h", 7, Tls()), "penstock+tls://h:7"),
        (
            "penstock+tls://[::1]",
            Remote("::1", 8410, Tls()),
            "penstock+tls://[::1]:8410",
        ),
        ("data", Local("data"), "data directory data"),
        ("a/b:17", Local("a/b:17"), "data directory a/b:17"),
        (Path("a") / "b", Local("a/b"), "data directory a/b"),
        (Local("x:1"), Local("x:1"), "data directory x:1"),
    ],
)
def test_an_address_is_a_directory_or_host_and_port(
    text: str | Path, address: object, shown: str
) -> None:
    assert address_of(text) == address
    assert str(address) == shown


def test_a_directory_that_is_there_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "host:17").mkdir()

    assert address_of("host:17") == Local("host:17")


@pytest.mark.parametrize(
    "text",
    [
        *("", "host", "host:", "host:x", ":17", "h:0", "h:70000"),
        *("penstock+tls://", "penstock+tls://h:0", "penstock://u:p@h", "https://h:1"),
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="HOST:PORT"):
        remote(text)


def test_without_an_address_the_environment_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PENSTOCK_SERVER", raising=False)
    with pytest.raises(InvalidOption, match=r"given, or else named by \$PENSTOCK_"):
        address_of(None)

    monkeypatch.setenv("PENSTOCK_SERVER", "broker.example:8410")

    assert address_of(None) == Remote("broker.example", 8410)


def test_a_socket_is_reached_through_a_descriptor(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 200)
    directory.mkdir()
    (directory / "penstock.sock").touch()

    with socket_path(str(directory)) as path:
        assert len(path) < 60
        assert Path(path).exists()

    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), "nothing listens there"),
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Refused"),
            "nothing listens there",
        ),
        (PermissionError(errno.EACCES, "Permission denied"), "permission denied"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_why_there_is_no_server_is_said(error: OSError, reason: str) -> None:
    assert str(not_running(Remote("h", 1), error)) == f"no server for h:1: {reason}"


@pytest.mark.parametrize("where", ["h:1", "penstock://h:1", "data"])
def test_whom_to_trust_is_not_said_in_vain(where: str) -> None:
    with pytest.raises(InvalidOption, match="penstock\\+tls"):
        address_of(where, Tls(ca_file="ca.pem"))

    assert address_of(where, Tls()) == address_of(where)


def test_a_key_without_a_certificate_is_refused() -> None:
    with pytest.raises(InvalidOption, match="key_file"):
        Tls(key_file="key.pem")


@pytest.mark.parametrize("name", ["ca_file", "cert_file"])
def test_files_of_tls_that_are_none_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.pem").write_text("no PEM")
    for file in ("bad.pem", "missing.pem"):
        with pytest.raises(InvalidOption, match="PEM") as caught:
            Tls(**{name: str(tmp_path / file)}).context()
        assert caught.value.name == name


def test_a_pipe_that_breaks_is_a_server_that_has_closed_it() -> None:
    assert reason_of(BrokenPipeError(errno.EPIPE, "Broken pipe")) == CLOSED
    assert reason_of(OSError(errno.EIO, "Input/output error")) == "Input/output error"
    assert reason_of(ConnectionResetError(CLOSED)) == CLOSED
