"""The ``penstock`` command: what is the same for all of its subcommands.

Exit codes: 0 all is well; 1 ``log verify`` found damage, ``schemas check`` what does
not fit, or ``up`` books that do not agree; 2 the command could not be carried out, the
reason is on standard error; 130 long work was stopped by Ctrl-C; 141 the reader of the
output has gone.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from importlib import import_module

import click

from penstock import __version__
from penstock.cli.interrupts import heed_sigterm
from penstock.cli.messages import messages
from penstock.cli.refusal import Refusal
from penstock.errors import PenstockError

# What a shell reports for a program that SIGPIPE ended.
BROKEN_PIPE = 141


# Where each command is: it is loaded when it is asked for, as all of them take long.
COMMANDS = {
    "log": ("log", "log"),
    "demo": ("demo", "demo"),
    "serve": ("serve", "serve"),
    "stop": ("stop", "stop"),
    "maze": ("maze", "maze"),
    "publish": ("publish", "publish"),
    "subscribe": ("subscribe", "subscribe"),
    "topics": ("topics", "topics"),
    "schemas": ("schemas", "schemas"),
    "subscriptions": ("subscriptions", "subscriptions"),
    "mqtt": ("mqtt", "mqtt"),
    "sinks": ("sinks", "sinks"),
    "top": ("top", "top"),
    "bench": ("bench", "bench"),
    "torture": ("torture", "torture"),
    "connections": ("connections", "connections"),
    "flow": ("flow", "flow"),
    "dead-letters": ("dead_letters", "dead_letters"),
    "errors": ("errors", "errors"),
    "logs": ("logs", "logs"),
    "chain": ("chain", "chain_command"),
    "sql": ("sql", "sql_command"),
    "config": ("config", "config"),
    "users": ("users", "users"),
    "token": ("token", "token"),
    "tweets": ("tweets", "tweets"),
    "ingest": ("ingest", "ingest"),
    "store": ("store", "store"),
    "pipeline": ("pipeline", "pipeline"),
    "cdc": ("cdc", "cdc"),
    "up": ("up", "up"),
    "completion": ("completion", "completion"),
}


class Commands(click.Group):
    """A group whose commands are loaded when they are needed, and fail in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*COMMANDS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, attribute = COMMANDS[cmd_name]
            found = getattr(import_module(f"penstock.cli.{module}"), attribute)
            self.add_command(found, cmd_name)
        return super().get_command(ctx, cmd_name)

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
