"""What the commands about users share: the file, a name, and a user not there."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.refusal import Refusal
from penstock.config import load
from penstock.config.tree import nearest
from penstock.server import users_file

FILE = click.option(
    "--file",
    metavar="PATH",
    help="The users file. Default: the setting users_file in [server].",
)
NAME = click.argument("name", metavar="NAME")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def path_of(file: str | None) -> Path:
    """The users file that is meant; raises Refusal if none is."""
    found = file or load().server.users_file
    if not found:
        hint = "give --file PATH, or set users_file in [server]"
        raise Refusal("there is no users file", hint)
    return Path(found)


def unknown_user(path: Path, name: str) -> Refusal:
    """Says that a user is not there, and who was perhaps meant."""
    near = nearest(name.lower(), users_file.read_users(path))
    hint = f"did you mean {near}?" if near else "penstock users list names them all"
    return Refusal(f"user {name} is not in {path}", hint)
