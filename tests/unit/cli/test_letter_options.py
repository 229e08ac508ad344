from __future__ import annotations

import click
from click.testing import CliRunner

from penstock.cli.letter_options import filter_options, given_filter
from penstock.desk.views.letters import Filter

found: list[Filter] = []


@click.command()
@filter_options
def command(**_: object) -> None:
    found.append(given_filter())


def given(*arguments: str) -> Filter:
    found.clear()
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return found[0]


def test_without_options_everything_is_taken() -> None:
    assert given() == Filter()


def test_every_option_is_a_field_of_the_filter() -> None:
    filter_ = given(
        *("--subscriber", "me", "--topic", "t", "--gateway", "json"),
        *("--error", "KeyError", "--reason", "no"),
        *("--since", "1970-01-01T00:00:01Z", "--until", "1970-01-01T00:00:02Z"),
    )

    assert filter_ == Filter(
        subscriber="me",
        topic="t",
        gateway="json",
        error="KeyError",
        reason="no",
        since_ms=1000,
        until_ms=2000,
    )
