"""``penstock tweets``: made-up tweets, as a stream or on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from penstock.cli.output import say, write_line
from penstock.cli.part import part, part_options
from penstock.errors import InvalidOption, MissingExtra
from penstock.tweets.options import PORT, STREAMS, TweetOptions

CliCommand = TypeVar("CliCommand", bound=Callable[..., Any])

_KINDS = (
    click.option(
        "--seed", type=int, default=1, show_default=True, help="Other tweets for each."
    ),
    click.option(
        "--panic-rate",
        type=click.FloatRange(0, 1),
        default=0.01,
        show_default=True,
        help='Share of messages that are {"message": panic}.',
    ),
    click.option(
        "--malformed-rate",
        type=click.FloatRange(0, 1),
        default=0.001,
        show_default=True,
        help="Share that is cut off, or is JSON without a tweet.",
    ),
)


def _kinds(command: CliCommand) -> CliCommand:
    for option in reversed(_KINDS):
        command = option(command)
    return command


@click.group()
def tweets() -> None:
    """Stream made-up tweets, the same ones for the same seed."""


@tweets.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen here.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="Listen on this port; 0 picks a free one.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0),
    default=500.0,
    show_default=True,
    help="Messages a second and stream, on average. 0: as fast as they are read.",
)
@click.option("--steady", is_flag=True, help="The same rate all the time.")
@click.option(
    "--count", type=click.IntRange(0), help="End each stream after this many messages."
)
@click.option(
    "--last",
    metavar="STREAM=N",
    multiple=True,
    help="End this stream after message N; once for each.",
)
@_kinds
@part_options
def serve_command(
    ready_file: str | None,
    status_file: str | None,
    last: tuple[str, ...],
    **given: Any,
) -> None:
    """Serve two streams of tweets as server-sent events.

    The streams are /tweets/1 and /tweets/2; /emotion_values says how words feel, and /
    what there is. A message has its number as id, so a reader that comes back with
    Last-Event-ID goes on where it was, even if the server was restarted meanwhile.

    Some messages are the text {"message": panic}, which is no JSON, and some are cut
    off or have no tweet. The rate swings by an order of magnitude unless it is steady.

    \b
    Examples:
      penstock tweets serve
      curl -N http://127.0.0.1:4000/tweets/1
      penstock tweets serve --port 0 --rate 2000 --steady --count 10000
    """
    options = TweetOptions(**given, last=dict(map(_last, last)))
    with part(ready_file, status_file) as self:
        _serve()(options, self, _announce)


@tweets.command("print")
@click.option(
    "--count",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Print this many messages.",
)
@click.option(
    "--stream",
    type=click.Choice(STREAMS),
    default=STREAMS[0],
    show_default=True,
    help="Of this stream.",
)
@click.option(
    "--from",
    "first",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Begin with this one.",
)
@_kinds
def print_command(
    count: int,
    stream: str,
    first: int,
    seed: int,
    panic_rate: float,
    malformed_rate: float,
) -> None:
    """Print the data of messages, one on a line, as a server sends them.

    \b
    Examples:
      penstock tweets print --count 3
      penstock tweets print --from 1000 --panic-rate 0 --malformed-rate 0 | jq .message
    """
    from penstock.tweets.generator import Generator

    options = TweetOptions(
        seed=seed, panic_rate=panic_rate, malformed_rate=malformed_rate
    )
    generator = Generator(
        options.seed,
        int(stream),
        panic_rate=options.panic_rate,
        malformed_rate=options.malformed_rate,
    )
    for number in range(first, first + count):
        write_line(generator.data(number))


def _last(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not (number.isascii() and number.isdigit()):
        raise InvalidOption("last", text, "STREAM=N, for example 1=5000")
    return name, int(number)


def _serve() -> Callable[..., None]:
    """Here, because a web server is an extra; raises MissingExtra."""
    try:
        from penstock.tweets.run import serve
    except ModuleNotFoundError as error:
        raise MissingExtra("Tweets", error.name or "starlette", "pipeline") from error
    return serve


def _announce(url: str) -> None:
    say(f"Tweets are streamed at {url}/tweets/1 and {url}/tweets/2")
    say("Press Ctrl-C to stop.")
