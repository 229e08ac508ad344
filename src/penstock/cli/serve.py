"""``penstock serve``: the server as a process, from its flags to its exit code.

In the background the process is a fork of the command. Until it is ready it speaks
where the command was given, and Ctrl-C ends both; then it lets go of the terminal, and
writes to a file.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any

import click

from penstock import __version__
from penstock.cli import show
from penstock.cli.flags import setting_flags, settings_of
from penstock.cli.messages import limited_to
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.client.address import is_loopback
from penstock.config import Settings
from penstock.errors import DirectoryLocked, NotProtected
from penstock.files import Files, make_file
from penstock.http.links import dashboard
from penstock.log import Layout, lock_holder
from penstock.server.options import LOGIN_PORTS, ServerOptions
from penstock.server.ready import ROLE, Ready
from penstock.server.users import Users
from penstock.supervisor.logs import shorten

Detach = Callable[[Path], None]
"""Called by the new process when it is ready, with the file to write to."""


def in_background(run: Callable[[Detach], int]) -> int:
    """Run in a process of its own; the exit code of this one.

    The caller gets 0 once the new process has detached itself, or what that ended with
    before. The new process returns from here, too, with what ``run`` returned.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        return run(lambda log: _detach(log, tell))
    os.close(tell)
    with os.fdopen(ready, "rb") as pipe:
        if pipe.read():
            return 0
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _detach(log: Path, tell: int) -> None:
    shorten(log)
    make_file(Files(), str(log))
    sys.stdout.flush()
    sys.stderr.flush()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(log, os.O_WRONLY | os.O_APPEND)
    for handle, place in ((nothing, 0), (said, 1), (said, 2)):
        os.dup2(handle, place)
    os.close(nothing)
    os.close(said)
    os.write(tell, b"ready")
    os.close(tell)


logger = logging.getLogger(__name__)

# Where a server in the background says what it has to say, in its data directory.
LOG = "server.log"
# What to try first at a port, where a person can.
TRY = {"line": "telnet", "consumer": "telnet", "publisher": "telnet"}


@click.command()
@setting_flags
@click.option(
    "--ready-file",
    metavar="PATH",
    help="Write process id, data directory and ports here as JSON, once all accept.",
)
@click.option(
    "--insecure", is_flag=True, help="Listen beyond this machine without a users file."
)
@click.option(
    "--background",
    is_flag=True,
    help='Come back once it is ready, and let it run on; "penstock stop" ends it.',
)
@click.option("-v", "--verbose", is_flag=True, help="Say more on standard error.")
@click.pass_context
def serve(
    context: click.Context,
    /,
    *,
    ready_file: str | None,
    insecure: bool,
    background: bool,
    verbose: bool,
    **given: Any,
) -> None:
    """Run the broker, with all of its gateways.

    Without any flags it listens on this machine only and keeps its data in the
    directory penstock-data. Port 0 picks a free port. Every setting has a place in the
    configuration file and in the environment as well; "penstock config show" lists
    them, and what they are now.

    Ctrl-C or SIGTERM stops it: nothing new is accepted, what was begun is finished
    and synced. A second one ends it at once; whatever was confirmed is safe all the
    same. With --background it writes to server.log in its data directory.

    \b
    Examples:
      penstock serve
      penstock serve --background
      penstock serve --data data --no-maze --line-port 0 --ready-file ready.json
      penstock serve --config penstock.toml --host 0.0.0.0 --users-file users
    """
    if verbose:
        context.with_resource(limited_to(logging.INFO))
    settings = settings_of(given)
    check(settings, insecure=insecure)
    warn(settings)
    if background:
        context.exit(in_background(lambda ready: _run(settings, ready_file, ready)))
    context.exit(_run(settings, ready_file))


def check(settings: Settings, *, insecure: bool) -> None:
    """Refuse what no server should start with."""
    listen = settings.listen
    if all(getattr(listen, name) is None for name in listen.__slots__):
        raise Refusal("every gateway is off", "leave at least one of them on")
    server = settings.server
    if server.users_file is not None:
        Users.load(server.users_file)
    elif not insecure and not is_loopback(server.host):
        raise NotProtected(server.host)


def warn(settings: Settings) -> None:
    """Say what other machines can do that they perhaps should not."""
    server, tls = settings.server, settings.tls
    if is_loopback(server.host):
        return
    if server.users_file is None:
        logger.warning(
            "every client that reaches %s may read and write everything: "
            "there is no users file",
            server.host,
            extra={"action": "open_to_everybody"},
        )
    on = [p for p in LOGIN_PORTS if getattr(settings.listen, f"{p}_port") is not None]
    plain = [name for name in on if not tls.covers(name) and not tls.confines(name)]
    if plain:
        logger.warning(
            "what travels to and from %s can be read on the way, passwords and tokens "
            "too: no TLS at %s (see tls.cert_file)",
            server.host,
            ", ".join(plain),
            extra={"action": "without_tls"},
        )


def announcement(
    ready: Ready, *, show_login: bool = False, background: bool = False
) -> Iterator[str]:
    """What to tell a person at the terminal.

    The admin token is told with ``show_login`` only: what is printed may be kept in
    files that others read.
    """
    rows = [("data", ready.data, "")]
    rows += [_listener(ready, name) for name in ready.ports]
    yield f"Penstock {__version__} is ready (pid {ready.pid})"
    yield from (f"  {line}" for line in _table(rows))
    if ready.login is not None and show_login:
        yield f"Open the dashboard: {ready.login}"
    elif "http" in ready.ports:
        tls = "http" in ready.tls
        address = dashboard(ready.host, ready.ports["http"], tls=tls)
        shown = f"penstock token show --link{_data_flag(ready.data)}"
        yield f"Open the dashboard: {address} ({shown}: the way in)"
    if background:
        yield f"It runs on, and writes to {Path(ready.data, LOG)}"
        yield f"To stop it: penstock stop --data {quote(ready.data)}"
    else:
        yield "Press Ctrl-C to stop."


def _data_flag(directory: str) -> str:
    """What commands have to be told to find a directory."""
    usual = Path(ServerOptions().data).absolute()
    return "" if Path(directory) == usual else f" --data {quote(directory)}"


def _run(
    settings: Settings, ready_file: str | None, detach: Detach | None = None
) -> int:
    """``detach``: to be called when it is ready, if it runs in the background."""
    # Here and not above: the other commands need no event loop.
    from penstock.server.run import serve as run

    def announce(ready: Ready) -> None:
        for line in announcement(
            ready,
            show_login=sys.stdout.isatty(),
            background=detach is not None,
        ):
            say(line)
        if detach is not None:
            detach(Path(ready.data, LOG))
            # From now on the user is not bothered by what a file may well tell.
            click.get_current_context().with_resource(limited_to(logging.INFO))

    try:
        return run(settings, ready_file=ready_file, announce=announce)
    except DirectoryLocked as error:
        raise Refusal(str(error), _way_out(error)) from error


def _way_out(error: DirectoryLocked) -> str:
    """What to do about a directory that is taken."""
    holder = lock_holder(Layout(error.path).lock)
    if holder is None or holder.role != ROLE:
        return error.hint
    return (
        "a server runs there already; another one needs a --data and ports of its own; "
        f"to stop that one: penstock stop --data {quote(error.path)}"
    )


def _table(rows: list[tuple[str, str, str]]) -> list[str]:
    # A long path must not push the other columns away.
    data, *listeners = rows
    width = max(len(name) for name, *_ in rows)
    first = f"{data[0].ljust(width)}  {data[1]}"
    padded = [(name.ljust(width), *rest) for name, *rest in listeners]
    return [first, *(show.table(padded) if padded else [])]


def _listener(ready: Ready, name: str) -> tuple[str, str, str]:
    port = ready.ports[name]
    host = f"[{ready.host}]" if ":" in ready.host else ready.host
    hint = f"try: {TRY[name]} {ready.host} {port}" if name in TRY else ""
    if name in ready.tls:
        hint = "TLS"
    return name.replace("_", " "), f"{host}:{port}", hint
