"""``penstock users allow``, ``deny`` and ``show``: what a user may do."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click
import msgspec

from penstock.access.grants import ACTIONS, ANY, GrantedAction, Grants, Rule
from penstock.cli.output import say, write_line
from penstock.cli.refusal import Refusal
from penstock.cli.user_options import FILE, JSON, NAME, path_of, unknown_user
from penstock.server import quota_line, rule_line, users_file
from penstock.server.rule_line import ADMINISTER

EVERYTHING = "everything"
ACTION = click.argument(
    "action", metavar="ACTION", type=click.Choice([*ACTIONS, ADMINISTER, EVERYTHING])
)
FILTERS = click.argument("filters", metavar="[FILTER]...", nargs=-1)
AS = click.option(
    "--as",
    "subscribers",
    metavar="SUBSCRIBER",
    multiple=True,
    help="A name to subscribe under; * at the end stands for anything. Repeatable.",
)

Rules = tuple[Rule, ...] | None


@click.command("allow")
@NAME
@ACTION
@FILTERS
@AS
@FILE
@JSON
def allow(
    name: str,
    action: str,
    filters: tuple[str, ...],
    subscribers: tuple[str, ...],
    file: str | None,
    *,
    as_json: bool,
) -> None:
    """Let a user publish, subscribe or read, in topics that filters match.

    In a filter + is one level and a last # is all levels from there, as in MQTT. Who
    may subscribe may read as well. A subscriber is called like the user, or begins
    with that and a dash, unless --as says otherwise; --as '*' is any name. A user
    without rules may do all this in all topics; with the first rule that ends.
    "everything" removes all rules again.

    "administer" is a role: it lets a user do everything, also delete topics, change
    schemas, move subscriptions and work on dead letters.

    \b
    Examples:
      penstock users allow anna publish 'sensors/#'
      penstock users allow anna subscribe '+/temp' alarms --as anna --as 'billing-*'
      penstock users allow anna administer
      penstock users allow anna everything
    """
    path = path_of(file)
    before = _grants(path, name)
    rules, admin = before.rules, before.admin
    made = _made(action, filters, _names(name, action, subscribers))
    if action == ADMINISTER:
        admin = True
    elif action == EVERYTHING:
        rules = None
    else:
        rules = (*(rules or ()), *made)
    users_file.set_rules(path, name, rules, admin=admin)
    if as_json:
        _show_json(path, name)
    elif action == EVERYTHING:
        say(f"{name.lower()} {rule_line.MAY} {_all(admin=admin)}")
    elif action == ADMINISTER:
        say(rule_line.rendered(name.lower(), ADMINISTER))
    else:
        for one in made:
            say(rule_line.rendered(name.lower(), one))
        if before.rules is None and not admin:
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
    """Take rules of a user away, or the role to administer.

    A rule is named by its action and filter; whatever subscribers it names, it goes. A
    user whose last rule is taken away may do nothing; "everything" takes all rules
    away, and the role.

    \b
    Examples:
      penstock users deny anna publish 'sensors/#'
      penstock users deny anna administer
      penstock users deny anna everything
    """
    path = path_of(file)
    before = _grants(path, name)
    rules, admin, taken = before.rules, before.admin, _made(action, filters, None)
    if action == ADMINISTER:
        if not admin:
            hint = f"penstock users show {name} lists what there is"
            raise Refusal(f"user {name} may not administer anyway", hint)
        admin = False
    elif action == EVERYTHING:
        rules, admin = (), False
    else:
        _need_all(name, rules, taken)
        rules = tuple(one for one in rules or () if _bare(one) not in taken)
    users_file.set_rules(path, name, rules, admin=admin)
    if as_json:
        _show_json(path, name)
    elif action == ADMINISTER:
        say(f"{name.lower()} may no longer {ADMINISTER}")
    elif rules or admin:
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
    grants = _grants(path, name)
    if as_json:
        _show_json(path, name)
        return
    if grants.admin:
        say(ADMINISTER)
    if grants.rules is None:
        say(_all(admin=grants.admin))
    elif not grants.rules:
        say(rule_line.NOTHING)
    for rule in grants.rules or ():
        say(rule_line.shown(rule))
    for words in quota_line.words(grants.quota):
        say(words)


COMMANDS = (allow, deny, show)


def _grants(path: Path, name: str) -> Grants:
    known = users_file.read_users(path).get(name.lower())
    if known is None:
        raise unknown_user(path, name)
    return known.grants


def _all(*, admin: bool) -> str:
    """What a user without rules may do."""
    return EVERYTHING if admin else f"{', '.join(ACTIONS)} everywhere, not {ADMINISTER}"


def _made(
    action: str, filters: tuple[str, ...], names: tuple[str, ...] | None
) -> tuple[Rule, ...]:
    if action in (ADMINISTER, EVERYTHING):
        if filters:
            raise Refusal(f"{action} takes no filter", "leave it out")
        return ()
    if not filters:
        raise Refusal(f"there is no filter of what to {action}", "'#' is all topics")
    # One of them, as the command line has checked.
    known = cast(GrantedAction, action)
    return tuple(rule_line.made(known, one, names) for one in filters)


def _names(
    name: str, action: str, subscribers: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Who the rules are good for; raises Refusal."""
    if action != "subscribe":
        if subscribers:
            raise Refusal("--as is for subscribe only", "leave it out")
        return None
    own = name.lower()
    return subscribers or (own, f"{own}-{ANY}")


def _bare(rule: Rule) -> Rule:
    """A rule as it is named when it is taken away."""
    return rule._replace(subscribers=None)


def _need_all(name: str, rules: Rules, taken: tuple[Rule, ...]) -> None:
    if rules is None:
        hint = f"'penstock users allow {name}' makes rules, and nothing else is allowed"
        raise Refusal(f"user {name} has no rules: that is {_all(admin=False)}", hint)
    for one in taken:
        if one not in map(_bare, rules):
            hint = f"penstock users show {name} lists the rules"
            raise Refusal(f"user {name} has no rule {one.action} {one.filter}", hint)


def _show_json(path: Path, name: str) -> None:
    grants = _grants(path, name)
    rules = grants.rules
    row = {
        "user": name.lower(),
        "file": str(path),
        "admin": grants.admin,
        "rules": None if rules is None else [one._asdict() for one in rules],
        "quota": users_file.read_users(path)[name.lower()].quota.limits,
    }
    write_line(msgspec.json.encode(row))
