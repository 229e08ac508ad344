"""``penstock dead-letters``: what could not be handled, looked at from all sides."""

from __future__ import annotations

from collections.abc import Iterable

import click

from penstock.cli.connect import (
    as_json,
    ask,
    at_desk,
    carry_out,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.dead_letters_work import drop_command, republish_command
from penstock.cli.export_test import export_test_command
from penstock.cli.letter_options import NUMBER, filter_options, given_filter
from penstock.cli.letter_text import (
    audit_table,
    group_table,
    letter_lines,
    letter_table,
)
from penstock.cli.moment import MOMENT
from penstock.cli.output import say
from penstock.client import redrive
from penstock.client.trails import audit
from penstock.desk.views.audit import AuditAction, AuditFilter
from penstock.desk.views.letters import LetterView, Status

COUNT = 100
_STATUSES = ("open", "republished", "dropped", "closed")
_ACTIONS = ("republished", "edited", "dropped")
_COUNT = click.option(
    "--count",
    type=click.IntRange(min=1),
    default=COUNT,
    show_default=True,
    help="How many to show.",
)


@click.group("dead-letters", invoke_without_command=True)
@server_options
@json_option("Print one JSON array.")
@click.pass_context
def dead_letters(context: click.Context, /, **_: object) -> None:
    """Look at dead letters, send them again, or drop them.

    Alone it lists the open ones, as "penstock dead-letters list" does.

    \b
    Examples:
      penstock dead-letters groups
      penstock dead-letters show 17
      penstock dead-letters republish --subscriber billing --all
    """
    if context.invoked_subcommand is None:
        _list(start=0, count=COUNT, closed=False, status=None)


@dead_letters.command("list")
@filter_options
@click.option("--from", "start", type=NUMBER, default=0, help="Begin at this number.")
@_COUNT
@click.option(
    "--all", "all_", is_flag=True, help="Also those that were republished or dropped."
)
@click.option(
    "--status", type=click.Choice(_STATUSES), help="Only those, instead of open ones."
)
@server_options
@json_option("Print one JSON array.")
def list_command(
    start: int, count: int, status: Status | None, *, all_: bool, **_: object
) -> None:
    """List dead letters, the oldest first.

    \b
    Examples:
      penstock dead-letters list --subscriber billing --error ValueError
      penstock dead-letters list --since 2h --reason timeout
      penstock dead-letters list --all --from 1000 --json
    """
    _list(start=start, count=count, closed=all_, status=status)


@dead_letters.command("groups")
@filter_options
@server_options
@json_option("Print one JSON array.")
def groups_command(**_: object) -> None:
    """Count open dead letters that are alike, the most frequent first.

    Alike are those of one subscriber, topic and kind of error, with the same reason
    but for numbers, ids and quoted text. EXAMPLE is the newest of them: look at it with
    "show", and send them all again with "republish --like".

    \b
    Example:
      penstock dead-letters groups --since 24h
    """
    with at_desk() as desk:
        found = carry_out(desk, redrive.groups(given_filter()))
    if as_json():
        show_json(found)
    else:
        _echo(group_table(found) if found else ["no dead letters"])


@dead_letters.command("show")
@click.argument("number", metavar="NUMBER", type=NUMBER)
@server_options
@json_option("Print one JSON object.")
def show_command(number: int, **_: object) -> None:
    """Show everything about a dead letter: its event, every try, what became of it.

    \b
    Example:
      penstock dead-letters show 17
    """
    with at_desk() as desk:
        letter = ask(desk, LetterView, "dead-letters.show", number=number)
    if as_json():
        show_json(letter)
    else:
        _echo(letter_lines(letter))


dead_letters.add_command(republish_command)
dead_letters.add_command(drop_command)
dead_letters.add_command(export_test_command)


@dead_letters.command("audit")
@click.option("--by", metavar="NAME", help="Only what this user did.")
@click.option("--action", type=click.Choice(_ACTIONS), help="Only that.")
@click.option("--subscriber", metavar="NAME", help="Only letters of this subscriber.")
@click.option("--topic", metavar="TOPIC", help="Only events of this topic.")
@click.option("--number", metavar="NUMBER", type=NUMBER, help="Only this letter.")
@click.option("--since", metavar="WHEN", type=MOMENT, help="Only from then on, or 90m.")
@click.option("--until", metavar="WHEN", type=MOMENT, help="Only older ones.")
@_COUNT
@server_options
@json_option("Print one JSON array.")
def audit_command(
    by: str | None,
    action: AuditAction | None,
    subscriber: str | None,
    topic: str | None,
    number: int | None,
    since: int | None,
    until: int | None,
    count: int,
    **_: object,
) -> None:
    """Show who sent again, edited or dropped what, the newest first.

    \b
    Examples:
      penstock dead-letters audit --since 7d
      penstock dead-letters audit --number 17 --json
    """
    filter = AuditFilter(by, action, subscriber, topic, number, since, until)
    with at_desk() as desk:
        found = carry_out(desk, audit(filter, count=count))
    if as_json():
        show_json(found)
    else:
        _echo(audit_table(found) if found else ["nothing was done"])


def _list(*, start: int, count: int, closed: bool, status: Status | None) -> None:
    plan = redrive.list_all(
        given_filter(), start=start, count=count, closed=closed, status=status
    )
    with at_desk() as desk:
        found = carry_out(desk, plan)
    if as_json():
        show_json(found)
    else:
        _echo(letter_table(found) if found else ["no dead letters"])


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)
