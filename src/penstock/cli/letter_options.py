"""The options that say which dead letters, shared by all commands for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.moment import MOMENT
from penstock.desk.views.letters import Filter

CliCommand = TypeVar("CliCommand", bound=Callable[..., Any])

NUMBER = click.IntRange(min=0)
NUMBERS = click.argument("numbers", metavar="[NUMBER]…", nargs=-1, type=NUMBER)
ALL = click.option(
    "--all", "all_", is_flag=True, help="All open ones that the filter takes."
)
LIKE = click.option(
    "--like",
    metavar="NUMBER",
    type=NUMBER,
    help="All open ones of the same subscriber, topic, error and kind of reason.",
)
DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Show what would become of each, and do nothing."
)

_WHICH = {
    "subscriber": "subscriber",
    "topic": "topic",
    "gateway": "gateway",
    "error": "error",
    "reason": "reason",
    "since": "since_ms",
    "until": "until_ms",
}


def filter_options(command: CliCommand) -> CliCommand:
    """The command with the options that say which letters."""
    for option in (
        click.option("--until", metavar="WHEN", type=MOMENT, help="Only older ones."),
        click.option(
            "--since", metavar="WHEN", type=MOMENT, help="Only from then on, or 90m."
        ),
        click.option("--reason", metavar="TEXT", help="Only reasons with this text."),
        click.option("--error", metavar="KIND", help="Only with this kind of error."),
        click.option("--gateway", metavar="NAME", help="Only from this gateway."),
        click.option("--topic", metavar="TOPIC", help="Only events of this topic."),
        click.option("--subscriber", metavar="NAME", help="Only of this subscriber."),
    ):
        command = option(command)
    return command


def given_filter() -> Filter:
    """The filter that the options of the command make."""
    said = click.get_current_context().params
    return Filter(**{field: said.get(option) for option, field in _WHICH.items()})
