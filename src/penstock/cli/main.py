"""The ``penstock`` command: what is the same for all of its subcommands.

Exit codes: 0 all is well; 1 ``log verify`` found damage, ``schemas check`` what does
not fit, or ``up`` books that do not agree; 2 the command could not be carried out, the
reason is on standard error; 130 long work was stopped by Ctrl-C; 141 whoever read the
output has gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys

import click

from penstock import __version__
from penstock.cli.bench import bench
from penstock.cli.cdc import cdc
from penstock.cli.chain import chain_command
from penstock.cli.completion import completion
from penstock.cli.config import config
from penstock.cli.connections import connections
from penstock.cli.dead_letters import dead_letters
from penstock.cli.demo import demo
from penstock.cli.errors import errors
from penstock.cli.flow import flow
from penstock.cli.ingest import ingest
from penstock.cli.interrupts import heed_sigterm
from penstock.cli.log import log
from penstock.cli.logs import logs
from penstock.cli.maze import maze
from penstock.cli.messages import messages
from penstock.cli.mqtt import mqtt
from penstock.cli.pipeline import pipeline
from penstock.cli.publish import publish
from penstock.cli.refusal import Refusal
from penstock.cli.schemas import schemas
from penstock.cli.serve import serve
from penstock.cli.sinks import sinks
from penstock.cli.sql import sql_command
from penstock.cli.stop import stop
from penstock.cli.store import store
from penstock.cli.subscribe import subscribe
from penstock.cli.subscriptions import subscriptions
from penstock.cli.token import token
from penstock.cli.top import top
from penstock.cli.topics import topics
from penstock.cli.torture import torture
from penstock.cli.tweets import tweets
from penstock.cli.up import up
from penstock.cli.users import users
from penstock.errors import PenstockError

# What a shell reports for a program that SIGPIPE ended.
BROKEN_PIPE = 141


class Commands(click.Group):
    """A group whose commands fail in one line."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except PenstockError as error:
            raise Refusal(str(error), error.hint) from error
        except BrokenPipeError:
            _forget_output()
            ctx.exit(BROKEN_PIPE)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            hint = "; ".join(getattr(error, "__notes__", ()))
            raise Refusal(f"{place}{error.strerror or error}", hint) from error
        return result


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="penstock")
@click.option("-v", "--verbose", is_flag=True, help="Say more on standard error.")
@click.pass_context
def cli(context: click.Context, *, verbose: bool) -> None:
    """Penstock: a durable message broker built on a small, trustworthy log.

    \b
    Start here:
      penstock serve               run the broker, on this machine only
      penstock publish T HELLO     publish an event to the topic T of a running broker
      penstock subscribe T         print its events as they come
      penstock up                  a whole pipeline at work, with Spark and a store
      penstock demo                see the log at work, in a few seconds
      penstock log stat DIR        what a data directory holds
      penstock log verify DIR      whether all of it is intact

    Errors are one line on standard error, with a hint where there is something
    you can do. Exit code 0 is success, 1 is what "log verify", "schemas check" or
    "up" found wrong, 2 is an error.
    """
    level = logging.INFO if verbose else logging.WARNING
    context.with_resource(messages(level))


cli.add_command(log)
cli.add_command(demo)
cli.add_command(serve)
cli.add_command(stop)
cli.add_command(maze)
cli.add_command(publish)
cli.add_command(subscribe)
cli.add_command(topics)
cli.add_command(schemas)
cli.add_command(subscriptions)
cli.add_command(mqtt)
cli.add_command(sinks)
cli.add_command(top)
cli.add_command(bench)
cli.add_command(torture)
cli.add_command(connections)
cli.add_command(flow)
cli.add_command(dead_letters)
cli.add_command(errors)
cli.add_command(logs)
cli.add_command(chain_command)
cli.add_command(sql_command)
cli.add_command(config)
cli.add_command(users)
cli.add_command(token)
cli.add_command(tweets)
cli.add_command(ingest)
cli.add_command(store)
cli.add_command(pipeline)
cli.add_command(cdc)
cli.add_command(up)
cli.add_command(completion)


def main() -> None:
    """The entry point of the command."""
    heed_sigterm()
    cli(prog_name="penstock")


def _forget_output() -> None:
    """Let what is still buffered go nowhere, so that exiting does not complain."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


if __name__ == "__main__":
    main()
