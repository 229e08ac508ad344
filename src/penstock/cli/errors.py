"""``penstock errors``: every try that failed, whatever became of its event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from penstock.cli import show
from penstock.cli.connect import (
    as_json,
    ask,
    at_desk,
    carry_out,
    json_option,
    server_options,
    show_json,
    show_rows,
)
from penstock.cli.letter_options import NUMBER
from penstock.cli.letter_text import short, text_lines
from penstock.cli.moment import MOMENT
from penstock.cli.output import say
from penstock.client import trails
from penstock.client.redrive import error_groups
from penstock.desk.views.errors import ErrorFilter, ErrorGroup, ErrorRow, ErrorView

CliCommand = TypeVar("CliCommand", bound=Callable[..., Any])

COUNT = 50
_WHICH = {
    "subscriber": "subscriber",
    "topic": "topic",
    "id_": "id",
    "offset": "offset",
    "error": "kind",
    "since": "since_ms",
    "until": "until_ms",
}
_HEADINGS = ("NUMBER", "TIME", "SUBSCRIBER", "EVENT", "TRY", "TOOK", "ERROR")
_GROUP_HEADINGS = (
    *("COUNT", "SUBSCRIBER", "TOPIC", "ERROR", "FIRST", "LAST", "EXAMPLE"),
)


def _filter_options(command: CliCommand) -> CliCommand:
    for option in (
        click.option("--until", metavar="WHEN", type=MOMENT, help="Only older ones."),
        click.option(
            "--since", metavar="WHEN", type=MOMENT, help="Only from then on, or 90m."
        ),
        click.option("--error", metavar="KIND", help="Only this kind of error."),
        click.option("--offset", type=NUMBER, help="Only the event at this offset."),
        click.option("--id", "id_", metavar="ID", help="Only events with this id."),
        click.option("--topic", metavar="TOPIC", help="Only events of this topic."),
        click.option("--subscriber", metavar="NAME", help="Only of this subscriber."),
    ):
        command = option(command)
    return command


@click.group("errors", invoke_without_command=True)
@server_options
@json_option("Print one JSON array.")
@click.pass_context
def errors(context: click.Context, /, **_: object) -> None:
    """Look at the error log: every try that failed, also where a later one succeeded.

    Alone it lists the newest, as "penstock errors list" does.

    \b
    Examples:
      penstock errors groups --since 24h
      penstock errors list --topic orders --id 4711
      penstock errors show 120
    """
    if context.invoked_subcommand is None:
        _list(COUNT, oldest_first=False)


@errors.command("list")
@_filter_options
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=COUNT,
    show_default=True,
    help="How many to show.",
)
@click.option("--oldest-first", is_flag=True, help="Begin with the oldest.")
@server_options
@json_option("Print one JSON array.")
def list_command(count: int, *, oldest_first: bool, **_: object) -> None:
    """List failed tries, the newest first.

    \b
    Examples:
      penstock errors list --subscriber billing --error ValueError --since 2h
      penstock errors list --topic orders --offset 17 --oldest-first
    """
    _list(count, oldest_first=oldest_first)


@errors.command("show")
@click.argument("number", metavar="NUMBER", type=NUMBER)
@server_options
@json_option("Print one JSON object.")
def show_command(number: int, **_: object) -> None:
    """Show everything about a failed try, with its traceback.

    \b
    Example:
      penstock errors show 120
    """
    with at_desk() as desk:
        found = ask(desk, ErrorView, "errors.show", number=number)
    if as_json():
        show_json(found)
        return
    for line in _lines(found):
        say(line)


@errors.command("groups")
@_filter_options
@server_options
@json_option("Print one JSON array.")
def groups_command(**_: object) -> None:
    """Count failed tries by subscriber, topic and kind of error.

    \b
    Example:
      penstock errors groups --since 24h
    """
    with at_desk() as desk:
        found = carry_out(desk, error_groups(_filter()))
    if as_json():
        show_json(found)
    elif not found:
        say("no errors")
    else:
        for line in show.table([_GROUP_HEADINGS, *map(_group_row, found)]):
            say(line)


def _list(count: int, *, oldest_first: bool) -> None:
    with at_desk() as desk:
        plan = trails.errors(_filter(), count=count, oldest_first=oldest_first)
        found = carry_out(desk, plan)
    show_rows(found, _HEADINGS, _row, "no errors")


def _filter() -> ErrorFilter:
    said = click.get_current_context().params
    return ErrorFilter(**{field: said.get(option) for option, field in _WHICH.items()})


def _row(one: ErrorRow) -> tuple[str, ...]:
    return (
        str(one.number),
        show.time(one.at_ms),
        one.subscriber,
        f"{one.topic} {one.offset}",
        str(one.tries),
        _took(one.duration_s),
        short(_error(one)),
    )


def _group_row(group: ErrorGroup) -> tuple[str, ...]:
    return (
        str(group.count),
        group.subscriber,
        group.topic,
        short(group.kind or "-"),
        show.time(group.first_ms),
        show.time(group.last_ms),
        str(group.example),
    )


def _lines(one: ErrorView) -> Iterator[str]:
    yield from show.table(
        [
            ("number", str(one.number)),
            ("time", show.time(one.at_ms)),
            ("subscriber", one.subscriber),
            ("event", f"offset {one.offset} of {one.topic}"),
            ("id", show.preview((one.id or "-").encode())),
            ("try", str(one.tries)),
            ("took", _took(one.duration_s)),
            ("error", show.preview(_error(one).encode())),
        ]
    )
    if one.traceback:
        yield ""
        yield from text_lines(one.traceback)


def _took(duration_s: float | None) -> str:
    return "-" if duration_s is None else f"{duration_s:.3f} s"


def _error(one: ErrorRow) -> str:
    return one.message if one.kind in ("", "Refused") else f"{one.kind}: {one.message}"
