"""``penstock dead-letters republish`` and ``drop``: what becomes of dead letters."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from penstock.cli import show
from penstock.cli.connect import (
    Asker,
    as_json,
    ask,
    at_desk,
    carry_out,
    confirm,
    json_option,
    server_options,
    show_json,
    who,
)
from penstock.cli.letter_options import (
    ALL,
    DRY_RUN,
    LIKE,
    NUMBERS,
    filter_options,
    given_filter,
)
from penstock.cli.output import say
from penstock.cli.progress import Reporter
from penstock.cli.refusal import Refusal
from penstock.client import redrive
from penstock.client.redrive import Which
from penstock.desk.views.letters import Done, Filter, LetterView

# Problems that are told one by one.
MAX_PROBLEMS = 20


@click.command("republish")
@NUMBERS
@filter_options
@ALL
@LIKE
@click.option("--edit", metavar="FILE", help="Send this payload instead; - is stdin.")
@click.option("--payload", metavar="TEXT", help="Send this payload instead.")
@click.option("--editor", is_flag=True, help="Edit the payload in $EDITOR, send that.")
@click.option("--because", metavar="TEXT", default="", help="Why, for the audit trail.")
@click.option(
    "--rate", metavar="N", type=float, help="Send at most so many per second."
)
@DRY_RUN
@server_options
@json_option("Print one JSON array: what became of each.")
def republish_command(
    numbers: tuple[int, ...],
    like: int | None,
    edit: str | None,
    payload: str | None,
    because: str,
    rate: float | None,
    *,
    all_: bool,
    editor: bool,
    dry_run: bool,
    **_: object,
) -> None:
    """Send events again, each to the subscription that failed with it, and no other.

    They keep their offsets and ids. Doing it twice sends once. Raw input has no
    subscription to go to: look at it with "show", and drop it.

    One letter can be sent with another payload. Only its subscription gets it; the
    topic stays as it is, and the audit trail keeps both.

    \b
    Examples:
      penstock dead-letters republish 17 18
      penstock dead-letters republish --all --subscriber billing --rate 100
      penstock dead-letters republish --like 17 --dry-run
      penstock dead-letters republish 17 --payload '{"amount": 12}'
      penstock dead-letters republish 17 --editor --because "amount was text"
    """
    ways = [edit is not None, payload is not None, editor]
    if any(ways):
        if sum(ways) > 1 or len(numbers) != 1 or all_ or like is not None:
            raise Refusal(
                "an edit is of one letter, and made in one way",
                "republish NUMBER with --edit FILE, --payload TEXT or --editor",
            )
        _edit(numbers[0], edit, payload, because, dry_run=dry_run)
        return
    chosen = _Chosen(numbers, like, all_=all_)
    with at_desk() as desk, Reporter("republished", quiet=dry_run) as report:
        plan = redrive.republish_all(
            chosen.which(desk), rate=rate, on_progress=report, dry_run=dry_run, by=who()
        )
        carry_out(desk, plan)
    _tell(report, each=bool(numbers) or dry_run)


@click.command("drop")
@NUMBERS
@filter_options
@ALL
@LIKE
@DRY_RUN
@click.option(
    "--because", metavar="TEXT", default="", help="Why, for the audit trail. Needed."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@server_options
@json_option("Print one JSON array: what became of each.")
def drop_command(
    numbers: tuple[int, ...],
    like: int | None,
    because: str,
    *,
    all_: bool,
    dry_run: bool,
    yes: bool,
    **_: object,
) -> None:
    """Close dead letters without sending them again.

    The audit trail keeps who did it and why. Asks first on a terminal; elsewhere --yes
    is needed.

    \b
    Example:
      penstock dead-letters drop --all --gateway json --because "old client" --yes
    """
    chosen = _Chosen(numbers, like, all_=all_)
    if not dry_run:
        if not because.strip():
            raise Refusal("say why they are dropped", "--because TEXT")
        what = show.count(len(numbers), "dead letter") if numbers else "all that match"
        confirm(f"Drop {what}?", yes=yes)
    with at_desk() as desk, Reporter("dropped", quiet=dry_run) as report:
        plan = redrive.drop_all(
            chosen.which(desk),
            reason=because or "a dry run",
            on_progress=report,
            dry_run=dry_run,
            by=who(),
        )
        carry_out(desk, plan)
    _tell(report, each=bool(numbers) or dry_run)


class _Chosen:
    """Letters by number, by filter, or by one that they are like."""

    def __init__(
        self, numbers: tuple[int, ...], like: int | None, *, all_: bool
    ) -> None:
        self._numbers = numbers
        self._like = like
        self._filter = given_filter()
        period = Filter(since_ms=self._filter.since_ms, until_ms=self._filter.until_ms)
        if (
            [bool(numbers), all_, like is not None].count(True) != 1
            or (numbers and self._filter != Filter())
            or (like is not None and self._filter != period)
        ):
            raise Refusal(
                "say which: numbers, --like NUMBER, or --all, with filters if you like"
            )

    def which(self, desk: Asker) -> Which:
        if self._numbers:
            return self._numbers
        if self._like is None:
            return self._filter
        found = carry_out(desk, redrive.like(self._like))
        return msgspec.structs.replace(
            found, since_ms=self._filter.since_ms, until_ms=self._filter.until_ms
        )


def _tell(report: Reporter, *, each: bool) -> None:
    """What became of the letters: of each, or in all."""
    results = report.results
    problems = [one for one in results if not one.done]
    if as_json():
        show_json(results)
    elif not results:
        say("no dead letters")
    elif each:
        for one in results:
            say(f"dead letter {one.number}: {one.text}", err=not one.done)
    else:
        for one in problems[:MAX_PROBLEMS]:
            say(f"dead letter {one.number}: {one.text}", err=True)
        if len(problems) > MAX_PROBLEMS:
            say(f"… {len(problems) - MAX_PROBLEMS} more like these", err=True)
        say(report.line)
    if problems:
        click.get_current_context().exit(2)


def _edit(
    number: int,
    file: str | None,
    text: str | None,
    because: str,
    *,
    dry_run: bool,
) -> None:
    with at_desk() as desk:
        if file is not None:
            payload = _read(file)
        elif text is not None:
            payload = text.encode()
        else:
            payload = _edited(desk, number)
        done = ask(
            desk,
            Done,
            "dead-letters.edit",
            number=number,
            payload=payload,
            reason=because,
            dry_run=dry_run,
            by=who(),
        )
    if as_json():
        show_json([done])
    else:
        say(f"dead letter {number}: {done.text}", err=not done.done)
    if not done.done:
        click.get_current_context().exit(2)


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def _edited(desk: Asker, number: int) -> bytes:
    """The payload of a letter after the user has had it in an editor."""
    letter = ask(desk, LetterView, "dead-letters.show", number=number)
    if letter.event is None:
        raise Refusal(f"dead letter {number} has no payload to be edited")
    before = letter.event.payload
    try:
        text, is_json = before.decode(), False
    except UnicodeDecodeError:
        hint = "use --edit FILE"
        raise Refusal(f"the payload of dead letter {number} is no text", hint) from None
    if (pretty := _formatted(before, 2)) is not None:
        text, is_json = pretty.decode(), True
    after = click.edit(text, extension=".json" if is_json else ".txt")
    if after is None or after.rstrip("\n") == text.rstrip("\n"):
        raise Refusal("nothing was changed, so nothing was done")
    if not is_json:
        return after.encode() if text.endswith("\n") else after.rstrip("\n").encode()
    compact = _formatted(after.encode(), -1)
    if compact is None:
        hint = "use --edit FILE if you mean it"
        raise Refusal("what you wrote is no JSON any more", hint)
    return compact


def _formatted(data: bytes, indent: int) -> bytes | None:
    """JSON with its structure, or without; None if it is none."""
    try:
        return msgspec.json.format(data, indent=indent)
    except (ValueError, RecursionError):
        return None
