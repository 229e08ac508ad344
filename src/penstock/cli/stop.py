"""``penstock stop``: end the server of a data directory, and wait until it has."""

from __future__ import annotations

import os
import select
import signal

import click

from penstock.cli.duration import Duration
from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.config import load
from penstock.log import Layout, is_locked, lock_holder
from penstock.server.ready import ROLE

# Longer than a server waits for connections that do not end (server.drain_s).
TIMEOUT_S = 30.0


@click.command()
@click.option(
    "--data",
    metavar="DIR",
    help='Data directory of the server. Default: as of "penstock serve".',
)
@click.option(
    "--timeout",
    "timeout_s",
    metavar="TIME",
    type=Duration(),
    default=TIMEOUT_S,
    show_default="30s",
    help="Wait so long for its end: 10s, 1m.",
)
def stop(data: str | None, timeout_s: float) -> None:
    """Stop the server of a data directory, wherever it was started.

    It is told to end as by Ctrl-C: nothing new is accepted, what was begun is finished
    and synced. The command ends when the server has. A program that holds the
    directory with penstock.open is no server, and is left alone.

    \b
    Examples:
      penstock serve --background
      penstock stop
      penstock stop --data shop-data --timeout 1m
    """
    directory = data or load().server.data
    pid = _server(directory)
    handle = _opened(pid)
    if handle is None or _server(directory) != pid:
        raise _not_running(directory)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        # A handle of a process is readable when that has ended.
        ended, _, _ = select.select([handle], [], [], timeout_s)
    finally:
        os.close(handle)
    if not ended:
        raise Refusal(
            f"the server with pid {pid} still runs after {timeout_s:g} s",
            "it was told to end; wait longer with --timeout",
        )
    say(f"stopped the server of {directory} (pid {pid})")


def _server(directory: str) -> int:
    """The process that serves a directory; raises Refusal if none does."""
    path = Layout(directory).lock
    holder = lock_holder(path)
    if holder is None or not is_locked(path):
        raise _not_running(directory)
    if holder.role != ROLE:
        raise Refusal(
            f"{directory} is held by process {holder.pid}, which is no server",
            "it is a program with a broker of its own: end that",
        )
    return holder.pid


def _opened(pid: int) -> int | None:
    """A handle of a process, which is never another one's; None if it has ended."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def _not_running(directory: str) -> Refusal:
    return Refusal(
        f"no server runs on data directory {directory}",
        "say which one you mean with --data",
    )
