"""``penstock ingest``: what other systems send, into topics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from penstock.cli.connect import server_options, token_of, whereabouts
from penstock.cli.duration import Duration
from penstock.cli.part import part, part_options
from penstock.errors import MissingExtra
from penstock.ingest.options import KEY, PANIC, SILENCE_S, SseOptions, addresses


@click.group()
def ingest() -> None:
    """Take in what other systems send, each event once."""


@ingest.command("sse")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option("--topic", required=True, help="Publish the events to this topic.")
@click.option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Remember the place in the stream by this name, once for each URL. "
    "Default: topic and URL.",
)
@click.option(
    "--key",
    metavar="PATH",
    default=KEY,
    show_default=True,
    help='Where in the JSON the key of an event is; "" for none.',
)
@click.option("--raw", is_flag=True, help="Publish what is no JSON object as well.")
@click.option(
    "--panic",
    metavar="TEXT",
    default=PANIC,
    show_default=True,
    help='What counts as a panic; "" for nothing.',
)
@click.option(
    "--samples", metavar="TOPIC", help="Publish how many panics there were to TOPIC."
)
@click.option(
    "--silence",
    "silence_s",
    metavar="SECONDS",
    type=click.FloatRange(0),
    default=SILENCE_S,
    show_default=True,
    help="Connect again when nothing came for so long; 0 never does.",
)
@click.option(
    "--linger",
    "linger_s",
    type=Duration(),
    metavar="TIME",
    default="50ms",
    show_default=True,
    help="Store what came within so long at once; longer takes less of the processor.",
)
@click.option("--until-end", is_flag=True, help="End when all streams are over.")
@server_options
@part_options
def sse_command(
    urls: tuple[str, ...],
    names: tuple[str, ...],
    ready_file: str | None,
    status_file: str | None,
    **given: Any,
) -> None:
    """Publish server-sent events, whatever their source.

    The data of an event is published as it is, with the headers source, sse-id and
    (unless it is "message") sse-event. What is no JSON object and what is too large
    becomes a dead letter with the reason, and so does a panic.

    How far a stream was read is stored together with its events. So nothing is lost
    and nothing comes twice, whichever side is killed, if the server gives every event
    an id and goes on behind the Last-Event-ID that it is told. If it does not, what it
    sends while the stream is not read is lost.

    Goes on until Ctrl-C or SIGTERM; a stream is over when its server answers 204.

    \b
    Examples:
      penstock ingest sse http://127.0.0.1:4000/tweets/1 --topic firehose
      penstock ingest sse https://example.com/events --topic news --raw --key ""
      penstock ingest sse URL1 URL2 --topic t --name one --name two --until-end
    """
    options = {name: given[name] for name in SseOptions.__slots__}
    streams = addresses(urls, names, options["topic"])
    where, user, password = whereabouts()
    token = token_of()
    run, server = _run()
    with part(ready_file, status_file) as self:
        to = server(address=where, user=user, password=password, token=token)
        run(streams, SseOptions(**options), to, self)


def _run() -> tuple[Callable[..., None], Callable[..., object]]:
    """Here, because an HTTP client is an extra; raises MissingExtra."""
    try:
        from penstock.ingest.run import TargetServer, run
    except ModuleNotFoundError as error:
        raise MissingExtra("Ingest", error.name or "aiohttp", "pipeline") from error
    return run, TargetServer
