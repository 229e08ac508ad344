"""``penstock users``: who may log in, and to do what."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    ask,
    ask_all,
    at_desk,
    json_option,
    server_options,
    show_rows,
)
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.cli.user_options import FILE, JSON, NAME, path_of, unknown_user
from penstock.cli.user_quota import limit
from penstock.cli.user_rules import COMMANDS
from penstock.desk.views.users import UsagePage, UsageRow
from penstock.server import users_file

_HEADINGS = (
    *("USER", "CONNECTIONS", "TOPICS", "SUBSCRIPTIONS", "STORED"),
    *("EVENTS/S", "BYTES/S", "WAITS"),
)


@click.command("usage")
@click.argument("name", metavar="[NAME]", required=False)
@server_options
@json_option("Print one JSON array.")
def usage(name: str | None, **_: object) -> None:
    """Show what users have, and what they may have at most.

    A number behind a / is the limit. WAITS is how long the user has to wait before it
    may publish more. Listed are users who have logged in since the server was started,
    or have made a topic or a subscription.

    \b
    Examples:
      penstock users usage
      penstock users usage anna
    """
    with at_desk() as desk:
        found = _all(desk) if name is None else _one(desk, name)
    show_rows(found, _HEADINGS, _cells, "no users")


def _one(desk: Asker, name: str) -> list[UsageRow]:
    return ask(desk, UsagePage, "users.usage", user=name).users


def _all(desk: Asker) -> list[UsageRow]:
    return ask_all(
        desk, UsagePage, "users.usage", lambda page: page.users, lambda row: row.user
    )


def _cells(row: UsageRow) -> tuple[str, ...]:
    limits = row.limits
    stored, rate = limits.get("stored_bytes"), limits.get("bytes_per_s")
    return (
        row.user,
        _of(str(row.connections), limits.get("connections")),
        _of(str(row.topics), limits.get("topics")),
        _of(str(row.subscriptions), limits.get("subscriptions")),
        show.size(row.stored_bytes)
        + ("" if stored is None else f"/{show.size(stored)}"),
        str(limits.get("events_per_s", "-")),
        "-" if rate is None else show.size(rate),
        f"{row.wait_s:.1f} s" if row.wait_s else "-",
    )


def _of(count: str, limit: int | None) -> str:
    return count if limit is None else f"{count}/{limit}"


@click.group()
def users() -> None:
    """Keep the users file.

    The file has a line for each user with a salted scrypt hash of the password, one
    for each rule of what the user may do, and one of what it may have at most. A
    running server notices a change within a second. User names are case-insensitive.
    """


for command in (*COMMANDS, limit, usage):
    users.add_command(command)


@users.command("add")
@NAME
@FILE
@click.option(
    "--password-stdin",
    is_flag=True,
    help="Read the password from the first line of standard input.",
)
@click.option(
    "--certificate",
    is_flag=True,
    help="No password: the certificate of a client names the user (tls.cert_users).",
)
@JSON
def add_command(
    name: str,
    file: str | None,
    *,
    password_stdin: bool,
    certificate: bool,
    as_json: bool,
) -> None:
    """Add a user, or change a user's password.

    Asks for the password twice, without showing it. The file is made if there is
    none, readable for its owner only.

    \b
    Examples:
      penstock users add anna --file users
      pass show penstock/anna | penstock users add anna --file users --password-stdin
      penstock users add sensor7 --file users --certificate
    """
    path = path_of(file)
    name = users_file.user_name(name)
    if certificate and password_stdin:
        raise Refusal("--certificate and --password-stdin exclude each other")
    if certificate:
        is_new = users_file.set_certificate(path, name)
    else:
        password = _from_stdin() if password_stdin else _asked(name)
        is_new = users_file.set_password(path, name, password)
    if as_json:
        _show_json(name, path, "added" if is_new else "changed")
    elif is_new:
        say(f"added {name} to {path}")
    else:
        what = "way in" if certificate else "password"
        say(f"changed the {what} of {name} in {path}")


@users.command("remove")
@NAME
@FILE
@JSON
def remove_command(name: str, file: str | None, *, as_json: bool) -> None:
    """Remove a user and the user's rules.

    A running server ends the user's connections within a second.

    \b
    Example:
      penstock users remove anna --file users
    """
    path = path_of(file)
    if not users_file.remove_user(path, name):
        raise unknown_user(path, name)
    if as_json:
        _show_json(name.lower(), path, "removed")
    else:
        say(f"removed {name.lower()} from {path}")


@users.command("list")
@FILE
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_command(file: str | None, *, as_json: bool) -> None:
    """List the users, one a line, with what they may do.

    \b
    Example:
      penstock users list --file users
    """
    known = sorted(users_file.read_users(path_of(file)).items())
    if as_json:
        rows = [{"user": name, "may": _kind(user)} for name, user in known]
        write_line(msgspec.json.encode(rows))
        return
    for line in show.table([(name, _kind(user)) for name, user in known]):
        say(line)


def _kind(user: users_file.UserEntry) -> str:
    if user.grants.admin:
        return "administer"
    if user.grants.rules is None:
        return "publish, subscribe, read"
    count = len(user.grants.rules)
    return f"{count} rule{'' if count == 1 else 's'}"


def _show_json(name: str, path: Path, done: str) -> None:
    row = {"user": name, "file": str(path), "done": done}
    write_line(msgspec.json.encode(row))


def _from_stdin() -> str:
    line = sys.stdin.readline()
    return line.removesuffix("\n").removesuffix("\r")


def _asked(name: str) -> str:
    try:
        text: str = click.prompt(
            f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True
        )
    except click.Abort:
        say(err=True)
        raise Refusal(
            "no password was given", "in scripts, use --password-stdin"
        ) from None
    return text
