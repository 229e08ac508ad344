"""``penstock dead-letters``: what could not be handled, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import click

from penstock.broker.desk_letters import MAX_ROWS
from penstock.broker.desk_views import (
    Done,
    DonePage,
    LetterPage,
    LetterRow,
    LetterView,
)
from penstock.cli import show
from penstock.cli.connect import (
    as_json,
    ask,
    confirm,
    connected,
    given,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.refusal import Refusal
from penstock.client import Client

Command = TypeVar("Command", bound=Callable[..., Any])

COUNT = 100
NUMBER = click.IntRange(min=0)
NUMBERS = click.argument("numbers", metavar="[NUMBER]…", nargs=-1, type=NUMBER)
_FILTERS = ("subscriber", "topic", "gateway", "reason")
_HEADINGS = ("NUMBER", "TIME", "STATUS", "SUBSCRIBER", "EVENT", "TRIES", "REASON")
# Of a reason, in a table.
_REASON_CHARACTERS = 60


def filter_options(command: Command) -> Command:
    """The command with the options that say which letters."""
    for option in (
        click.option("--reason", metavar="TEXT", help="Only reasons with this text."),
        click.option("--gateway", metavar="NAME", help="Only from this gateway."),
        click.option("--topic", metavar="TOPIC", help="Only events of this topic."),
        click.option("--subscriber", metavar="NAME", help="Only of this subscriber."),
    ):
        command = option(command)
    return command


@click.group("dead-letters", invoke_without_command=True)
@server_options
@json_option("Print one JSON array.")
@click.pass_context
def dead_letters(context: click.Context, /, **_: object) -> None:
    """Look at dead letters, send them again, or drop them.

    Alone it lists the open ones, as "penstock dead-letters list" does.

    \b
    Examples:
      penstock dead-letters
      penstock dead-letters show 17
      penstock dead-letters republish --subscriber billing --all
    """
    if context.invoked_subcommand is None:
        _list(start=0, count=COUNT, closed=False)


@dead_letters.command("list")
@filter_options
@click.option("--from", "start", type=NUMBER, default=0, help="Begin at this number.")
@click.option(
    "--count",
    type=click.IntRange(min=1),
    default=COUNT,
    show_default=True,
    help="How many to show.",
)
@click.option(
    "--all", "all_", is_flag=True, help="Also those that were republished or dropped."
)
@server_options
@json_option("Print one JSON array.")
def list_command(start: int, count: int, *, all_: bool, **_: object) -> None:
    """List dead letters, the oldest first.

    \b
    Examples:
      penstock dead-letters list --subscriber billing --reason timeout
      penstock dead-letters list --all --from 1000 --json
    """
    _list(start=start, count=count, closed=all_)


@dead_letters.command("show")
@click.argument("number", metavar="NUMBER", type=NUMBER)
@server_options
@json_option("Print one JSON object.")
def show_command(number: int, **_: object) -> None:
    """Show everything about a dead letter, with its event if that is still there.

    \b
    Example:
      penstock dead-letters show 17
    """
    with connected() as client:
        letter = ask(client, LetterView, "dead-letters.show", number=number)
    if as_json():
        show_json(letter)
        return
    for line in _lines(letter):
        click.echo(line)


@dead_letters.command("republish")
@NUMBERS
@filter_options
@click.option(
    "--all", "all_", is_flag=True, help="All open ones that the filter takes."
)
@click.option("--dry-run", is_flag=True, help="Show which, and do nothing.")
@server_options
@json_option("Print one JSON array: what became of each.")
def republish_command(
    numbers: tuple[int, ...], *, all_: bool, dry_run: bool, **_: object
) -> None:
    """Send events again, each to the subscription that failed with it, and no other.

    They keep their offsets and ids. Doing it twice sends once. Raw input has no
    subscription to go to: look at it with "show", and drop it.

    \b
    Examples:
      penstock dead-letters republish 17 18
      penstock dead-letters republish --all --topic orders --dry-run
    """
    _work("dead-letters.republish", numbers, all_=all_, dry_run=dry_run)


@dead_letters.command("drop")
@NUMBERS
@filter_options
@click.option(
    "--all", "all_", is_flag=True, help="All open ones that the filter takes."
)
@click.option("--dry-run", is_flag=True, help="Show which, and do nothing.")
@click.option(
    "--because", metavar="TEXT", default="", help="Why, for the server's log."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@server_options
@json_option("Print one JSON array: what became of each.")
def drop_command(
    numbers: tuple[int, ...],
    because: str,
    *,
    all_: bool,
    dry_run: bool,
    yes: bool,
    **_: object,
) -> None:
    """Close dead letters without sending them again.

    Asks first on a terminal; elsewhere --yes is needed.

    \b
    Example:
      penstock dead-letters drop --all --gateway json --because "old client" --yes
    """
    if not dry_run:
        what = "all that match" if all_ else show.count(len(numbers), "dead letter")
        confirm(f"Drop {what}?", yes=yes)
    _work("dead-letters.drop", numbers, all_=all_, dry_run=dry_run, reason=because)


def _list(*, start: int, count: int, closed: bool) -> None:
    with connected() as client:
        found = list(_search(client, start, count, closed=closed))
    if as_json():
        show_json(found)
    else:
        _show_table(found)


def _search(
    client: Client, start: int, count: int, *, closed: bool
) -> Iterator[LetterRow]:
    next_: int | None = start
    while next_ is not None and count > 0:
        page = ask(
            client,
            LetterPage,
            "dead-letters",
            filter=_filter(),
            start=next_,
            closed=closed,
            limit=min(count, MAX_ROWS),
        )
        yield from page.letters
        count -= len(page.letters)
        next_ = page.next


def _work(
    verb: str, numbers: tuple[int, ...], *, all_: bool, dry_run: bool, **more: object
) -> None:
    if bool(numbers) == all_ or (numbers and _filter()):
        raise Refusal("say which: either numbers, or --all, with filters if you like")
    with connected() as client:
        if dry_run:
            found = _chosen(client, numbers)
            if verb == "dead-letters.republish":
                found = [one for one in found if numbers or one.offset is not None]
            if as_json():
                show_json(found)
            else:
                _show_table(found)
            return
        results = list(_done(client, verb, numbers, **more))
    if as_json():
        show_json(results)
    else:
        _show_results(results)
    if not all(one.done for one in results):
        click.get_current_context().exit(2)


def _chosen(client: Client, numbers: tuple[int, ...]) -> list[LetterRow]:
    if numbers:
        return [
            ask(client, LetterRow, "dead-letters.show", number=number)
            for number in numbers
        ]
    return list(_search(client, 0, 1 << 62, closed=False))


def _done(
    client: Client, verb: str, numbers: tuple[int, ...], **more: object
) -> Iterator[Done]:
    for at in range(0, len(numbers), MAX_ROWS):
        part = list(numbers[at : at + MAX_ROWS])
        yield from ask(client, DonePage, verb, numbers=part, **more).results
    next_: int | None = None if numbers else 0
    while next_ is not None:
        page = ask(client, DonePage, verb, filter=_filter(), start=next_, **more)
        yield from page.results
        next_ = page.next


def _filter() -> dict[str, str]:
    said = {name: given(name) for name in _FILTERS}
    return {name: value for name, value in said.items() if value}


def _show_table(found: list[LetterRow]) -> None:
    if not found:
        click.echo("no dead letters")
        return
    for line in show.table([_HEADINGS, *map(_row, found)]):
        click.echo(line)


def _row(letter: LetterRow) -> tuple[str, ...]:
    reason = show.preview(letter.reason.encode())
    if len(reason) > _REASON_CHARACTERS:
        reason = reason[: _REASON_CHARACTERS - 1] + "…"
    return (
        str(letter.number),
        show.time(letter.at_ms),
        letter.status,
        letter.subscriber or f"({letter.gateway})",
        "raw input" if letter.topic is None else f"{letter.topic} {letter.offset}",
        str(letter.tries) if letter.tries else "-",
        reason,
    )


def _show_results(results: list[Done]) -> None:
    for one in results:
        click.echo(f"dead letter {one.number}: {one.text}", err=not one.done)
    if not results:
        click.echo("no dead letters")


def _lines(letter: LetterView) -> Iterator[str]:
    rows = [
        ("number", str(letter.number)),
        ("status", letter.status),
        ("time", show.time(letter.at_ms)),
        ("gateway", letter.gateway),
        ("subscriber", letter.subscriber or "-"),
        ("reason", show.preview(letter.reason.encode())),
    ]
    if letter.topic is not None:
        rows.append(("event", f"offset {letter.offset} of {letter.topic}"))
        rows.append(("id", letter.id or "-"))
    rows += [
        (f"try {number}", show.preview(error.encode()))
        for number, error in enumerate(
            letter.errors, letter.tries + 1 - len(letter.errors)
        )
    ]
    if letter.raw is not None:
        rows.append(("raw input", show.preview(letter.raw)))
    if letter.event is not None:
        rows.append(("payload", show.preview(letter.event.payload)))
    elif letter.topic is not None:
        rows.append(("payload", "gone"))
    yield from show.table(rows)
