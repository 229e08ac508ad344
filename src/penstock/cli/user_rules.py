"""``penstock users allow``, ``deny`` and ``show``: what a user may do."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click
import msgspec

from penstock.broker.access import ACTIONS, Action, Rule
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.cli.user_options import FILE, JSON, NAME, nobody, path_of
from penstock.server import quota_line, rule_line, users_file

EVERYTHING = "everything"
ACTION = click.argument(
    "action", metavar="ACTION", type=click.Choice([*ACTIONS, EVERYTHING])
)
FILTERS = click.argument("filters", metavar="[FILTER]...", nargs=-1)

Rules = tuple[Rule, ...] | None


@click.command("allow")
@NAME
@ACTION
@FILTERS
@FILE
@JSON
def allow(
    name: str,
    action: str,
    filters: tuple[str, ...],
    file: str | None,
    *,
    as_json: bool,
) -> None:
    """Let a user publish, subscribe or read, in topics that filters match.

    In a filter + is one level and a last # is all levels from there, as in MQTT. Who
    may subscribe may read as well. A user without rules may do everything; with the
    first rule that ends. "everything" removes all rules again.

    \b
    Examples:
      penstock users allow anna publish 'sensors/#'
      penstock users allow anna subscribe '+/temp' alarms
      penstock users allow anna everything
    """
    path = path_of(file)
    before = _rules(path, name)
    rules: Rules = None
    if action != EVERYTHING:
        rules = (*(before or ()), *_made(action, filters))
    else:
        _need_none(filters)
    users_file.set_rules(path, name, rules)
    if as_json:
        _show_json(path, name)
    elif rules is None:
        say(f"{name.lower()} may do everything")
    else:
        for one in _made(action, filters):
            say(rule_line.rendered(name.lower(), one))
        if before is None:
            say(f"{name.lower()} has rules now, and may do nothing else")


@click.command("deny")
@NAME
@ACTION
@FILTERS
@FILE
@JSON
def deny(
    name: str,
    action: str,
    filters: tuple[str, ...],
    file: str | None,
    *,
    as_json: bool,
) -> None:
    """Take rules of a user away.

    A rule is named as it was made. A user whose last rule is taken away may do
    nothing; "everything" takes all rules away.

    \b
    Examples:
      penstock users deny anna publish 'sensors/#'
      penstock users deny anna everything
    """
    path = path_of(file)
    before = _rules(path, name)
    rules: tuple[Rule, ...] = ()
    if action != EVERYTHING:
        taken = _made(action, filters)
        _need_all(name, before, taken)
        rules = tuple(one for one in before or () if one not in taken)
    else:
        _need_none(filters)
    users_file.set_rules(path, name, rules)
    if as_json:
        _show_json(path, name)
    elif rules:
        for one in taken:
            say(f"{name.lower()} may no longer {one.action} {one.filter}")
    else:
        say(rule_line.rendered(name.lower(), None))


@click.command("show")
@NAME
@FILE
@JSON
def show(name: str, file: str | None, *, as_json: bool) -> None:
    """Show what a user may do, one rule a line, and what it may have at most.

    \b
    Example:
      penstock users show anna --file users
    """
    path = path_of(file)
    rules = _rules(path, name)
    if as_json:
        _show_json(path, name)
        return
    if rules is None:
        say(EVERYTHING)
    elif not rules:
        say(rule_line.NOTHING)
    else:
        for action, filter_ in rules:
            say(f"{action} {filter_}")
    for words in quota_line.words(users_file.read_users(path)[name.lower()].quota):
        say(words)


COMMANDS = (allow, deny, show)


def _rules(path: Path, name: str) -> Rules:
    known = users_file.read_users(path).get(name.lower())
    if known is None:
        raise nobody(path, name)
    return known.grants.rules


def _made(action: str, filters: tuple[str, ...]) -> tuple[Rule, ...]:
    if not filters:
        raise Refusal(f"there is no filter of what to {action}", "'#' is all topics")
    # One of them, as the command line has checked.
    return tuple(rule_line.made(cast(Action, action), one) for one in filters)


def _need_none(filters: tuple[str, ...]) -> None:
    if filters:
        raise Refusal(f"{EVERYTHING} takes no filter", "leave it out")


def _need_all(name: str, rules: Rules, taken: tuple[Rule, ...]) -> None:
    if rules is None:
        hint = f"'penstock users allow {name}' makes rules, and nothing else is allowed"
        raise Refusal(f"user {name} has no rules and may do everything", hint)
    for one in taken:
        if one not in rules:
            hint = f"penstock users show {name} lists the rules"
            raise Refusal(f"user {name} has no rule {one.action} {one.filter}", hint)


def _show_json(path: Path, name: str) -> None:
    rules = _rules(path, name)
    row = {
        "user": name.lower(),
        "file": str(path),
        "rules": None if rules is None else [one._asdict() for one in rules],
        "quota": users_file.read_users(path)[name.lower()].quota.limits,
    }
    write_line(msgspec.json.encode(row))
