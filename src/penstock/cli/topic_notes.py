"""``penstock topics describe`` and ``comment``: what people write about a topic."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from penstock.cli import show
from penstock.cli.connect import (
    as_json,
    ask,
    ask_all,
    at_desk,
    json_option,
    server_options,
    show_json,
    who,
)
from penstock.cli.output import say, say_text
from penstock.desk.views.schemas import CommentPage, CommentRow, DocumentationView

NAME = click.argument("name", metavar="TOPIC")


@click.command("describe")
@NAME
@click.argument("file", metavar="[FILE|-]", required=False)
@server_options
@json_option("Print one JSON object.")
def describe(name: str, file: str | None, **_: object) -> None:
    """Show the documentation of a topic, or take it from a Markdown file.

    An empty file removes it.

    \b
    Examples:
      penstock topics describe orders
      penstock topics describe orders orders.md
      echo 'One event for each order.' | penstock topics describe orders -
    """
    text = None if file is None else _read(file)
    with at_desk() as desk:
        by = None if text is None else who()
        found = ask(
            desk, DocumentationView, "topics.describe", name=name, text=text, by=by
        )
    if as_json():
        show_json(found)
    elif text is not None:
        say(f"documented topic {name}" if found.text else f"{name}: removed")
    else:
        text = found.text or f"topic {name} is not documented"
        say_text(text, nl=not text.endswith("\n"))


@click.command("comment")
@NAME
@click.argument("text", metavar="TEXT")
@server_options
@json_option("Print one JSON object.")
def comment(name: str, text: str, **_: object) -> None:
    """Add a comment to a topic.

    \b
    Example:
      penstock topics comment orders 'prices are gross since May'
    """
    with at_desk() as desk:
        done = ask(desk, CommentRow, "topics.comment", name=name, text=text, by=who())
    if as_json():
        show_json(done)
    else:
        say(f"comment {done.number} on {name}")


@click.command("comments")
@NAME
@server_options
@json_option("Print one JSON array.")
def comments(name: str, **_: object) -> None:
    """Show the comments on a topic.

    \b
    Example:
      penstock topics comments orders
    """
    with at_desk() as desk:
        found = ask_all(
            desk,
            CommentPage,
            "topics.comments",
            lambda page: page.comments,
            lambda row: row.number,
            name=name,
        )
    if as_json():
        show_json(found)
        return
    for one in found:
        say(f"{one.number}  {show.time(one.at_ms)}  {one.by}")
        for line in one.text.splitlines():
            say(f"   {line}")
    if not found:
        say(f"no comments on {name}")


@click.command("uncomment")
@NAME
@click.argument("number", type=click.IntRange(1), metavar="NUMBER")
@server_options
@json_option("Print one JSON object: the comment as it was.")
def uncomment(name: str, number: int, **_: object) -> None:
    """Remove a comment from a topic.

    \b
    Example:
      penstock topics uncomment orders 3
    """
    with at_desk() as desk:
        gone = ask(
            *(desk, CommentRow, "topics.uncomment"), name=name, number=number, by=who()
        )
    if as_json():
        show_json(gone)
    else:
        say(f"removed comment {gone.number} from {name}")


COMMANDS = (describe, comment, comments, uncomment)


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.buffer.read().decode()
    return Path(file).read_text(encoding="utf-8")
