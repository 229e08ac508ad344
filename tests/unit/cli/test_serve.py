from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

from penstock import __version__
from penstock.cli.main import cli
from penstock.cli.serve import announcement, warn
from penstock.client.address import is_loopback
from penstock.config import Settings
from penstock.errors import DirectoryLocked
from penstock.server.options import ServerOptions, TlsOptions
from penstock.server.ready import Ready
from penstock.server.users_file import set_password

REST = ("http", "mqtt")
READY = Ready(
    pid=123,
    data="a/long/way/to/the/data",
    host="127.0.0.1",
    ports={"line": 8000, "maze_client": 50123, "native": 8410},
)


class Server:
    """Stands for the server itself: remembers what it was started with."""

    def __init__(self) -> None:
        self.started: list[Settings] = []
        self.ready_file: str | None = None
        self.exit_code = 0
        self.error: Exception | None = None

    def serve(
        self,
        settings: Settings,
        *,
        ready_file: str | None,
        announce: Callable[[Ready], None],
    ) -> int:
        if self.error:
            raise self.error
        self.started.append(settings)
        self.ready_file = ready_file
        announce(READY)
        logging.getLogger("penstock.server").info("stopped")
        return self.exit_code


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    server = Server()
    module: Any = ModuleType("penstock.server.run")
    module.serve = server.serve
    monkeypatch.setitem(sys.modules, "penstock.server.run", module)
    return server


def test_the_server_gets_its_settings_and_says_where_it_is(server: Server) -> None:
    result = run("--data", "d", "--line-port", "0", "--no-maze", "--ready-file", "r")

    (settings,) = server.started
    assert (settings.server.data, settings.listen.line_port) == ("d", 0)
    assert settings.listen.maze_event_port is None
    assert server.ready_file == "r"
    assert result.stdout == "\n".join([*announcement(READY), ""])
    assert result.stderr == ""
    assert result.exit_code == 0


def test_the_announcement_is_one_aligned_block() -> None:
    assert list(announcement(READY)) == [
        f"Penstock {__version__} is ready (pid 123)",
        "  data         a/long/way/to/the/data",
        "  line         127.0.0.1:8000   try: telnet 127.0.0.1 8000",
        "  maze client  127.0.0.1:50123",
        "  native       127.0.0.1:8410",
        "Press Ctrl-C to stop.",
    ]


LOGIN = "http://127.0.0.1:8420/#token=pk_secret"


@pytest.mark.parametrize(
    ("show_login", "said"),
    [
        (True, f"Open the dashboard: {LOGIN}"),
        (
            False,
            (
                "Open the dashboard: http://127.0.0.1:8420/ "
                "(penstock token show --link --data d: the way in)"
            ),
        ),
    ],
)
def test_the_way_into_the_dashboard_is_told_to_a_terminal_only(
    *, show_login: bool, said: str
) -> None:
    ready = Ready(pid=1, data="d", host="127.0.0.1", ports={"http": 8420}, login=LOGIN)

    lines = list(announcement(ready, show_login=show_login))

    assert lines[-2] == said
    assert "\n".join(lines).count("pk_secret") == show_login


@pytest.mark.parametrize(
    ("name", "flag"), [("penstock-data", ""), ("a b", " --data '{}'")]
)
def test_what_is_to_be_pasted_names_the_directory(name: str, flag: str) -> None:
    data = str(Path(name).absolute())
    ready = Ready(pid=1, data=data, host="127.0.0.1", ports={"http": 8420})

    lines = list(announcement(ready, background=True))

    assert lines[-3].endswith(
        f"(penstock token show --link{flag.format(data)}: the way in)"
    )
    assert lines[-1] == f"To stop it: penstock stop --data {quote(data)}"


def test_an_address_with_colons_is_put_in_brackets() -> None:
    ready = Ready(pid=1, data="d", host="::1", ports={"line": 8000})

    assert "  line  [::1]:8000  try: telnet ::1 8000" in list(announcement(ready))


def test_the_exit_code_is_that_of_the_server(server: Server) -> None:
    server.exit_code = 3

    assert run().exit_code == 3


def test_verbose_says_more(server: Server) -> None:
    assert run("-v").stderr == "info: stopped\n"
    assert run().stderr == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            DirectoryLocked("d", 77),
            (
                "error: data directory d is held by process 77\n"
                f"hint: {DirectoryLocked.hint}\n"
            ),
        ),
        (OSError(98, "Address already in use"), "error: Address already in use\n"),
    ],
)
def test_a_server_that_does_not_start_says_why(
    server: Server, error: Exception, said: str
) -> None:
    server.error = error

    result = run()

    assert (result.stdout, result.stderr, result.exit_code) == ("", said, 2)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "*"])
def test_other_machines_are_not_let_in_without_users(server: Server, host: str) -> None:
    result = run("--host", host)

    assert result.stderr == (
        f"error: host {host} can be reached from other machines, "
        "and there is no users file\n"
        "hint: make a users file with 'penstock users add' and give --users-file, "
        "or let every client in with --insecure\n"
    )
    assert result.exit_code == 2
    assert server.started == []


def test_other_machines_are_let_in_if_that_is_wanted(server: Server) -> None:
    assert run("--host", "0.0.0.0", "--insecure").exit_code == 0


def test_other_machines_are_let_in_with_users(server: Server, tmp_path: Path) -> None:
    users = tmp_path / "users"
    set_password(users, "anna", "x")

    result = run("--host", "0.0.0.0", "--users-file", str(users))

    assert result.exit_code == 0
    assert server.started[0].server.users_file == str(users)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--line-port", "http"],
            (
                "error: flag --line-port: listen.line_port is 'http': "
                "must be a whole number, or 'off'\n"
            ),
        ),
        (
            ["--line-port", "1", "--no-line"],
            "error: --line-port and --no-line exclude each other\n",
        ),
        (
            [
                "--no-line",
                "--no-json",
                "--no-maze",
                "--no-native",
                "--no-http",
                "--no-mqtt",
            ],
            "error: every gateway is off\nhint: leave at least one of them on\n",
        ),
        (
            ["--config", "none.toml"],
            "error: configuration file none.toml: No such file or directory\n",
        ),
        (["--users-file", "none"], "error: none: No such file or directory\n"),
        (
            ["--users-file", "bad"],
            (
                "error: users file bad, line 1: "
                "there is no ':' between name and password\n"
                "hint: a line is 'name:scrypt$…', as 'penstock users add' writes it\n"
            ),
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_started(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad").write_text("rubbish")

    result = run(*arguments)

    assert (result.stdout, result.stderr, result.exit_code) == ("", said, 2)
    assert server.started == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_this_machine_is_known(host: str) -> None:
    assert is_loopback(host)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["serve", *arguments])


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, []),
        ({"host": "0.0.0.0"}, ["open_to_everybody", "without_tls"]),
        ({"host": "0.0.0.0", "users_file": "u"}, ["without_tls"]),
        ({"host": "0.0.0.0", "users_file": "u", "cert_file": "c"}, []),
        (
            {"host": "::", "users_file": "u", "cert_file": "c", "plain": "mqtt"},
            ["without_tls"],
        ),
    ],
)
def test_what_is_open_to_other_machines_is_said(
    caplog: pytest.LogCaptureFixture, settings: dict[str, str], told: list[str]
) -> None:
    names = ("host", "users_file")
    server = {name: settings[name] for name in names if name in settings}
    tls = {name: value for name, value in settings.items() if name not in names}

    warn(Settings(server=ServerOptions(**server), tls=TlsOptions(**tls)))  # type: ignore[arg-type]

    assert [getattr(one, "action", "") for one in caplog.records] == told
    if "plain" in settings:
        assert "no TLS at mqtt " in caplog.text


def test_ports_of_tls_are_announced_as_such() -> None:
    ready = replace(READY, ports={"line": 1, "http": 2}, tls=("line", "http"))

    said = "\n".join(announcement(ready))

    assert "telnet" not in said
    assert said.count("TLS") == 2
    assert "https://127.0.0.1:2/" in said
