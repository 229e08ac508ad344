"""``penstock users limit``: what a user may have at most."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import msgspec

from penstock.access.quota import NAMES, Quota
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.cli.user_options import FILE, JSON, NAME, path_of, unknown_user
from penstock.server import quota_line, users_file

OFF = "off"


@click.command("limit")
@NAME
@click.option("--connections", metavar="N", help="At a time, over all gateways.")
@click.option("--topics", metavar="N", help="That the user has made.")
@click.option("--subscriptions", metavar="N", help="That the user has made.")
@click.option("--events-per-s", metavar="N", help="Published; more wait.")
@click.option("--bytes-per-s", metavar="SIZE", help="Published; more wait.")
@click.option("--stored-bytes", metavar="SIZE", help="In topics the user has made.")
@FILE
@JSON
def limit(name: str, file: str | None, *, as_json: bool, **said: str | None) -> None:
    """Limit what a user may have; "off" takes a limit away.

    Sizes may have a unit: 64KiB, 1MiB, 1GiB. What is not named stays as it is. Where
    there is no limit of the user's own, those of the settings in [quota] hold.

    \b
    Examples:
      penstock users limit anna --events-per-s 1000 --bytes-per-s 1MiB
      penstock users limit anna --connections 10 --topics 100 --stored-bytes 10GiB
      penstock users limit anna --connections off
    """
    path = path_of(file)
    known = users_file.read_users(path).get(name.lower())
    if known is None:
        raise unknown_user(path, name)
    quota = _limited(known.quota, said)
    users_file.set_quota(path, name, quota)
    if as_json:
        _show_json(path, name.lower(), quota)
    elif words := quota_line.words(quota):
        say(" ".join([name.lower(), quota_line.HAS, *words]))
    else:
        say(f"{name.lower()} has no limits of its own")


def _limited(quota: Quota, said: dict[str, str | None]) -> Quota:
    given = {one: text for one in NAMES if (text := said[one]) is not None}
    if not given:
        raise Refusal("no limit was given", "'penstock users limit --help' names them")
    try:
        limits = {
            one: None if text == OFF else quota_line.limit(one, text)
            for one, text in given.items()
        }
        return replace(quota, **limits)
    except ValueError as error:
        raise Refusal(str(error), f"or {OFF!r}, for none") from None


def _show_json(path: Path, name: str, quota: Quota) -> None:
    row = {"user": name, "file": str(path), "quota": quota.limits}
    write_line(msgspec.json.encode(row))
