"""``penstock token``: who may use the HTTP API and the dashboard."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import click

from penstock.cli import show
from penstock.cli.connect import PROGRAM, ask, confirm, given, json_option, show_json
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.client import connect
from penstock.client.address import Local
from penstock.config import load
from penstock.config.tree import nearest
from penstock.desk.views.figures import Config
from penstock.errors import NotRunning, UnknownToken
from penstock.http.key_file import (
    ADMIN,
    DAY_MS,
    MAX_DAYS,
    Key,
    KeyFile,
    KeyScope,
    TokenRequest,
    row_of,
)
from penstock.http.links import login_link
from penstock.server.options import TlsOptions

SCOPES = ("admin", "read", "topics")
_DATA = click.option(
    "--data",
    metavar="DIR",
    help='Data directory of the server. Default: as of "penstock serve".',
)
_NAME = click.argument("name", metavar="NAME")


@click.group(invoke_without_command=True)
@_DATA
@json_option("Print one JSON object.")
@click.pass_context
def token(context: click.Context, /, *, data: str | None, as_json: bool) -> None:
    """Show, make and remove tokens of the HTTP API.

    A server makes the token "admin" when it first starts; without a command this
    shows it. Tokens are kept in the data directory as salted hashes; only "admin" can
    be shown again, by the owner of the directory. A running server notices changes at
    once.
    """
    if context.invoked_subcommand is None:
        context.invoke(show_command, link=False)


@token.command("show")
@click.option("--link", is_flag=True, help="Print an address that logs a browser in.")
@_DATA
@json_option("Print one JSON object.")
def show_command(*, link: bool, data: str | None = None, as_json: bool = False) -> None:
    """Show the token "admin".

    \b
    Examples:
      penstock token show
      curl -H "Authorization: Bearer $(penstock token)" 127.0.0.1:8420/v1/topics
    """
    found = _file().admin_token()
    if found is None:
        directory = _file().directory
        raise Refusal(
            f"{directory} holds no admin token that could be shown",
            "'penstock serve' makes one when it first starts, 'penstock token renew' "
            "another one",
        )
    _tell(found, link=link)


@token.command("renew")
@click.option("--link", is_flag=True, help="Print an address that logs a browser in.")
@_DATA
@json_option("Print one JSON object.")
def renew_command(*, link: bool, data: str | None, as_json: bool) -> None:
    """Make the token "admin" anew and show it; the old one counts no more.

    \b
    Example:
      penstock token renew
    """
    _tell(_file().renew(_now_ms()), link=link)


@token.command("add")
@_NAME
@click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help='What it may do. Default: "topics" if topics are given, else "admin".',
)
@click.option(
    "--publish",
    metavar="TOPIC",
    multiple=True,
    help="A topic it may publish to; * at the end stands for anything. Repeatable.",
)
@click.option(
    "--subscribe",
    metavar="TOPIC",
    multiple=True,
    help="A topic it may read and subscribe to. Repeatable.",
)
@click.option(
    "--days",
    type=click.FloatRange(min=0, max=MAX_DAYS, min_open=True),
    help="It counts for so many days. Default: for ever.",
)
@_DATA
@json_option("Print one JSON object.")
def add_command(
    name: str,
    *,
    scope: str | None,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...],
    days: float | None,
    data: str | None,
    as_json: bool,
) -> None:
    """Make a token and show it, this once.

    \b
    Examples:
      penstock token add grafana --scope read
      penstock token add shop --publish orders --publish 'shop/*' --days 90
    """
    now_ms = _now_ms()
    chosen = scope or ("topics" if publish or subscribe else "admin")
    wanted = TokenRequest(
        name=name,
        scope=cast(KeyScope, chosen),  # one of SCOPES, as click has seen to
        publish=publish,
        subscribe=subscribe,
        expires_ms=None if days is None else now_ms + int(days * DAY_MS),
    )
    made = _file().add(wanted, now_ms)
    if given("as_json"):
        show_json({"name": name, "scope": chosen, "token": made})
    else:
        say(made)


@token.command("list")
@_DATA
@json_option("Print one JSON array.")
def list_command(*, data: str | None, as_json: bool) -> None:
    """List the tokens, without their secrets.

    \b
    Example:
      penstock token list
    """
    keys = sorted(_file().read().values(), key=lambda key: key.name)
    if given("as_json"):
        show_json([row_of(key) for key in keys])
        return
    heads = ("name", "scope", "topics", "made", "expires")
    for line in show.table([heads, *map(_columns, keys)]):
        say(line)


@token.command("remove")
@_NAME
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_DATA
@json_option("Print one JSON object.")
def remove_command(name: str, *, yes: bool, data: str | None, as_json: bool) -> None:
    """Remove a token; requests and sessions with it are refused from now on.

    \b
    Example:
      penstock token remove shop
    """
    file = _file()
    if name == ADMIN:
        confirm("Remove the token admin?", yes=yes)
    try:
        removed = file.remove(name)
    except UnknownToken:
        near = nearest(name, file.read())
        hint = f"did you mean {near}?" if near else "penstock token list names them all"
        raise Refusal(f"there is no token {name} in {file.path}", hint) from None
    if given("as_json"):
        show_json(row_of(removed))
    else:
        say(f"removed {name}")


def _tell(found: str, *, link: bool) -> None:
    if given("as_json"):
        show_json({"name": ADMIN, "token": found, "link": _link(found)})
    else:
        say(_link(found) if link else found)


def _link(found: str) -> str:
    """An address that logs in: of the server that runs, or would by the settings."""
    settings = load()
    host, port, tls = settings.server.host, settings.listen.http_port, settings.tls
    if running := _running():
        host, port = str(running["server.host"]), cast(int, running["listen.http_port"])
        tls = TlsOptions(
            cert_file=cast(str | None, running["tls.cert_file"]),
            plain=cast(str | None, running["tls.plain"]),
        )
    return login_link(host, port or 0, found, tls=tls.covers("http"))


def _running() -> dict[str, object]:
    """The settings of the server of the directory; nothing if none runs."""
    try:
        with connect(Local(str(_file().directory)), name=PROGRAM) as client:
            found = ask(client, Config, "config").settings
    except NotRunning:
        return {}
    return {row.key: row.value for row in found}


def _file() -> KeyFile:
    directory = Path(given("data") or load().server.data)
    if not directory.is_dir():
        raise Refusal(
            f"{directory} is not there",
            "say where the server keeps its data: --data DIR",
        )
    return KeyFile(directory)


def _columns(key: Key) -> tuple[str, ...]:
    row = row_of(key)
    topics = [f"publish {one}" for one in row.publish]
    topics += [f"subscribe {one}" for one in row.subscribe]
    expires = "never" if row.expires_ms is None else show.time(row.expires_ms)
    return row.name, row.scope, ", ".join(topics), show.time(row.made_ms), expires


def _now_ms() -> int:
    return int(time.time() * 1000)
