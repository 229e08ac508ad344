"""How commands reach a server, or its files: the options that all of them have.

A command that publishes or consumes needs a server. One that asks the desk does not:
where none runs, it opens the data directory itself, and says so.

``penstock topics --data DIR show T`` and ``penstock topics show T --data DIR`` mean the
same: an option that a command was not given is looked for in its group.

A command that names the port of a server of the same account shows it the admin token
of the token file. Another account may have taken the port while the server was away, so
first the system is asked who listens there.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar

import click
import msgspec

from penstock.cli import show
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.client import Client, connect
from penstock.client.address import (
    NO_LISTENER,
    VARIABLE,
    Local,
    Remote,
    ServerAddress,
    is_loopback,
    remote,
)
from penstock.client.plan import AnyPage, Plan, all_rows, drive_blocking
from penstock.client.tls import Tls
from penstock.config import load
from penstock.errors import BadTokenFile, NotRunning, ServerRefused
from penstock.http.key_file import KeyFile
from penstock.log import Layout, is_locked
from penstock.model.printable import printable

# What the system says of sockets: one line each, with the account that has it.
TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENS = "0A"
ROOT = 0


def own_token(where: Remote, directory: str) -> str | None:
    """The admin token of the directory, if no other account can listen at that port.

    None if the port is not on this machine, or the token is not ours to read.
    """
    if not is_loopback(where.host):
        return None
    file = KeyFile(directory)
    try:
        token, owner = file.admin_token(), file.admin_path.stat().st_uid
    except (OSError, BadTokenFile):
        return None
    listening = set(listeners(where.port))
    trusted = listening and listening <= {ROOT, os.getuid(), owner}
    return token if trusted else None


def listeners(port: int) -> Iterator[int]:
    """The accounts that listen at a port, at whichever address of this machine.

    A line: number, local address:port, remote address:port, state, queues, timer,
    retransmits, account, …; addresses and ports in hexadecimal.
    """
    for table in TABLES:
        try:
            lines = table.read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, _, _, _, uid, *_ = line.split()
            if state == LISTENS and int(local.rpartition(":")[2], 16) == port:
                yield int(uid)


CliCommand = TypeVar("CliCommand", bound=Callable[..., Any])
AnyView = TypeVar("AnyView")
Result = TypeVar("Result")
Row = TypeVar("Row")

# Who published it, unless a user logs in.
PROGRAM = "penstock"
# A server that was started just before may take so long until it listens.
START_S = 5.0
# After this the person is told what is being waited for.
SILENT_S = 1.0
LOOK_S = 0.05
# Passwords that were asked for, so that the user is not asked twice.
_ASKED = "penstock.passwords"

_OPTIONS = (
    click.option(
        "--data",
        metavar="DIR",
        help='Data directory of the server. Default: as of "penstock serve".',
    ),
    click.option(
        "--server",
        metavar="HOST:PORT",
        help="Native port of a server, instead; over TLS penstock+tls://HOST:PORT. "
        f"Default: ${VARIABLE}.",
    ),
    click.option("--user", metavar="NAME", help="Log in as this user."),
    click.option(
        "--password-file",
        metavar="FILE",
        help="Read the password from the first line of FILE. Default: ask for it.",
    ),
    click.option(
        "--token-file",
        metavar="FILE",
        help="Come in with the admin token in the first line of FILE.",
    ),
    click.option(
        "--ca-file",
        metavar="FILE",
        help="Trust servers these certificates vouch for. Default: the system's.",
    ),
    click.option(
        "--cert-file", metavar="FILE", help="Certificate to show to the server."
    ),
    click.option(
        "--key-file", metavar="FILE", help="Its private key, if in another file."
    ),
)


def server_options(command: CliCommand) -> CliCommand:
    """The command with the options that say which server."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def json_option(help_: str) -> Callable[[CliCommand], CliCommand]:
    return click.option("--json", "as_json", is_flag=True, help=help_)


def given(name: str) -> Any:
    """The value of an option, of this command or of a group around it."""
    context = click.get_current_context(silent=True)
    while context is not None:
        value = context.params.get(name)
        if value:
            return value
        context = context.parent
    return None


def as_json() -> bool:
    return bool(given("as_json"))


def whereabouts() -> tuple[ServerAddress, str | None, str | None]:
    """What the options name: a server, a user and the password."""
    user = given("user")
    return _address(), user, _password(user)


def credentials() -> tuple[ServerAddress, str | None, str | None, str | None]:
    """The same and a token: the one that was named, or else that of our own server."""
    where, user, password = whereabouts()
    ours = _own_client(where)
    if ours is None:
        return where, user, password, token_of()
    client, token = ours
    client.close()
    return where, user, password, token


@contextmanager
def connected(*, patient: bool = True) -> Iterator[Client]:
    """A client of the server that the options name.

    ``patient``: a server that was started just before is waited for.
    """
    with (_awaited if patient else _opened)(_address()) as it:
        yield it


def token_of() -> str | None:
    """The token that --token-file names; raises Refusal."""
    file = given("token_file")
    if not file:
        return None
    if given("user"):
        raise Refusal("--token-file and --user exclude each other")
    with Path(file).open(encoding="utf-8") as lines:
        return lines.readline().strip()


def no_token(who: str) -> None:
    """Refuse a token for a program that has no use for it."""
    if given("token_file"):
        raise Refusal(f"--token-file is not for {who}", "log in with --user")


class Asker(Protocol):
    """What answers for a desk: a client, or the desk itself."""

    def ask(self, verb: str, **arguments: object) -> object: ...


@contextmanager
def at_desk() -> Iterator[Asker]:
    """The desk of the server that the options name, or of its files if none runs."""
    with _desk() as desk:
        yield desk


def _desk() -> AbstractContextManager[Asker]:
    where = _address()
    try:
        return _opened(where)
    except NotRunning:
        if (
            not isinstance(where, Local)
            or given("user") is not None
            or not _holds_log(where.directory)
        ):
            return _awaited(where)
        if is_locked(Layout(where.directory).lock):
            with suppress(NotRunning):  # it is no server that is starting
                return _awaited(where)
            return _offline(where.directory)  # says who has it
    say(
        f"note: no server is running on {where.directory}: working on its files",
        err=True,
    )
    return _offline(where.directory)


def _holds_log(directory: str) -> bool:
    """Whether a log has been kept there."""
    return Path(Layout(directory).journal).is_dir()


def _offline(directory: str) -> AbstractContextManager[Asker]:
    # Here, because most commands ask a server and need no broker of their own.
    from penstock.cli.offline import offline

    return offline(directory)


def _awaited(where: ServerAddress) -> Client:
    """A client, as soon as a server listens; raises NotRunning if none does soon."""
    began_s = monotonic()
    announced = False
    while True:
        try:
            return _opened(where)
        except NotRunning as error:
            waited_s = monotonic() - began_s
            if waited_s >= START_S or error.reason != NO_LISTENER:
                raise
        if waited_s >= SILENT_S and not announced:
            announced = True
            say(f"waiting for a server at {where} …", err=True)
        sleep(LOOK_S)


def _opened(where: ServerAddress) -> Client:
    """A client with what the options say, or else with the token of our own server."""
    ours = _own_client(where)
    if ours is not None:
        return ours[0]
    user = given("user")
    return connect(
        where, user=user, password=_password(user), token=token_of(), name=PROGRAM
    )


def _own_client(where: ServerAddress) -> tuple[Client, str] | None:
    """A client with the token of our own server, if it is one and no user logs in."""
    # First whether both are named, before the user is asked for a password.
    if token_of() is not None or given("user") or not isinstance(where, Remote):
        return None
    token = own_token(where, load().server.data)
    if token is not None:
        with suppress(ServerRefused):  # it is that of another server of ours
            return connect(where, token=token, name=PROGRAM), token
    return None


def carry_out(desk: Asker, plan: Plan[Result]) -> Result:
    """The result of a plan, page by page."""

    def answer(verb: str, arguments: Mapping[str, object]) -> object:
        return desk.ask(verb, **arguments)

    return drive_blocking(plan, answer, sleep)


def who() -> str:
    """Who does it, for the audit trail: --user, or the user of this machine.

    A server that has checked a password writes down whose it was, whatever this says.
    """
    user: str | None = given("user")
    if user is not None:
        return user
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def ask(
    client: Asker, view: type[AnyView], verb: str, /, **arguments: object
) -> AnyView:
    """The answer of the desk as the type it has."""
    said = {name: value for name, value in arguments.items() if value is not None}
    return msgspec.convert(client.ask(verb, **said), view)


def ask_all(
    client: Asker,
    view: type[AnyPage],
    verb: str,
    rows: Callable[[AnyPage], list[Row]],
    key: Callable[[Row], str | int],
    /,
    **arguments: object,
) -> list[Row]:
    """What the desk answers, page after page: see ``all_rows``."""
    return carry_out(client, all_rows(view, verb, rows, key, **arguments))


def show_json(value: object) -> None:
    write_line(msgspec.json.encode(value))


def show_rows(
    found: Sequence[Row],
    headings: Sequence[str],
    cells: Callable[[Row], Sequence[str]],
    nothing: str,
) -> None:
    """What was found: as JSON, as a table, or that it is nothing."""
    if as_json():
        show_json(found)
    elif found:
        for line in show.table([headings, *map(cells, found)]):
            say(line)
    else:
        say(nothing)


def confirm(question: str, *, yes: bool) -> None:
    """Ask before something goes for good, where there is a user to ask."""
    if yes:
        return
    if not _is_terminal():
        reason = f"{question} There is no terminal to ask at"
        raise Refusal(reason, "say --yes if you mean it")
    if not click.confirm(printable(question), err=True):
        raise Refusal("nothing was done")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _address() -> ServerAddress:
    data, server = given("data"), given("server")
    if data and server:
        raise Refusal("--data and --server exclude each other")
    if not data:
        server = server or os.environ.get(VARIABLE)
    secure = Tls(**{name: given(name) for name in Tls.__slots__})
    if server:
        return remote(server, secure)
    if secure != Tls():
        raise Refusal("--ca-file, --cert-file and --key-file need --server")
    return Local(data or load().server.data)


def _password(user: str | None) -> str | None:
    file = given("password_file")
    if user is None:
        if file:
            raise Refusal("--password-file needs --user")
        return None
    if file:
        with Path(file).open(encoding="utf-8") as lines:
            return lines.readline().rstrip("\r\n")
    asked: dict[str, str] = click.get_current_context().meta.setdefault(_ASKED, {})
    if user not in asked:
        question = f"Password of {user}"
        asked[user] = click.prompt(question, hide_input=True, err=True)
    return asked[user]
