"""``penstock up``: the whole pipeline in one terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from penstock.cli.conf import conf_option
from penstock.cli.duration import Duration
from penstock.cli.refusal import Refusal
from penstock.config import load
from penstock.errors import MissingExtra
from penstock.store.store import VARIABLE

RATE = 500.0
FAILED = 1


@click.command()
@click.option(
    "--data",
    metavar="DIR",
    default="penstock-data",
    show_default=True,
    help="Keep everything in this directory.",
)
@click.option(
    "--for",
    "for_s",
    type=Duration(),
    metavar="TIME",
    help="Run for so long, work off what is left, say what came of it, and end.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    help="End each of the two streams after this many messages, and then as --for.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    default=RATE,
    show_default=True,
    help="Tweets a second of each of the two streams, on average.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the tweets.")
@click.option(
    "--resting",
    is_flag=True,
    help="Start everything, and the stream when a user says twitter at the control "
    "port.",
)
@click.option("--no-spark", is_flag=True, help="Without Spark, store and changes.")
@click.option(
    "--store",
    metavar="URL",
    envvar=VARIABLE,
    help="mongodb://… or postgresql://… of your own. "
    f"Default: ${VARIABLE}, else a PostgreSQL of ours.",
)
@click.option(
    "--master",
    default="local[2]",
    show_default=True,
    help="Where Spark runs: local[N], spark://HOST:PORT, or local-cluster[N,CORES,MB].",
)
@conf_option
@click.option(
    "--trigger",
    "trigger_s",
    type=Duration(),
    default="1s",
    show_default=True,
    metavar="TIME",
    help="How often Spark takes what has come.",
)
@click.option(
    "--ack-delay",
    "ack_delay_s",
    type=Duration(),
    metavar="TIME",
    help="Subscribers acknowledge each event so long after it came.",
)
@click.option("--user", metavar="NAME", help="Log in as this user of the broker.")
@click.option(
    "--password-file",
    metavar="FILE",
    help="His password: the first line of FILE.",
)
@click.option(
    "--ca-file",
    metavar="FILE",
    help="Trust the broker by these certificates, if it speaks TLS.",
)
@click.option("--line-port", default=8000, show_default=True, help="Of the broker.")
@click.option("--native-port", default=8410, show_default=True, help="Of the broker.")
@click.option(
    "--control-port",
    default=8080,
    show_default=True,
    help="Shows tweets by telnet, and starts the stream if it rests.",
)
@click.option("--http-port", default=8420, show_default=True, help="Of the dashboard.")
@click.option(
    "--tweets-port", default=4000, show_default=True, help="Of the tweets' source."
)
@click.option(
    "--store-port", default=0, show_default=True, help="Of our store; 0: a free one."
)
@click.option("--plain", is_flag=True, help="Plain lines, also on a terminal.")
@click.pass_context
def up(
    context: click.Context, /, *, for_s: float | None, plain: bool, **given: Any
) -> None:
    """Run everything: tweets, broker, Spark, a store, its changes, and subscribers.

    Tweets come from a source of made-up ones, go to the topic firehose, through Spark
    into a store, and from there as changes to the topics tweets, users and
    users_engagements, where subscribers acknowledge them. Statistics are in the topics
    logger_stats, tweets_stats, users_stats and hashtag_stats. A part that dies is
    started again. Ctrl-C ends everything in order.

    With --resting no tweet comes until a client says twitter at the control port, and
    the time of --for counts from then.

    With --for the exit code is 0 only if every stage has processed events and nothing
    was lost.

    \b
    Examples:
      penstock up
      penstock up --for 60s --rate 2000
      penstock up --resting
      penstock up --store mongodb://localhost:27017/tweets?replicaSet=rs0
      penstock up --master local[4] --trigger 500ms
      penstock up --master spark://127.0.0.1:7077 --conf spark.executor.memory=2g
    """
    login = login_of(given.pop("user"), given.pop("password_file"))
    try:
        from penstock.cli.up_run import run
    except ImportError as error:
        package = (error.name or "rich").partition(".")[0]
        raise MissingExtra("penstock up", package, "pipeline") from error

    if given["no_spark"]:
        if context.get_parameter_source("store") is ParameterSource.COMMANDLINE:
            raise Refusal("--store and --no-spark exclude each other")
        given["store"] = None
    directory = Path(given.pop("data")).absolute()
    live = sys.stdout.isatty() and not plain
    good = run(directory, for_s, live=live, login=login, **given)
    context.exit(0 if good else FAILED)


def login_of(user: str | None, file: str | None) -> tuple[str, str] | None:
    """Who the parts log in as; raises Refusal where the broker would refuse them."""
    if user is None and file is None:
        users = load().server.users_file
        if users is not None:
            raise Refusal(
                f"the broker asks for a login: its users are in {users}",
                "give --user and --password-file, for all parts that talk to it",
            )
        return None
    if user is None or file is None:
        raise Refusal("--user and --password-file need each other")
    with Path(file).open(encoding="utf-8"):
        return user, str(Path(file).absolute())
