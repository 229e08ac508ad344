"""``penstock top``: the overview in a terminal, every second."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

import click

from penstock.cli.connect import (
    Asker,
    as_json,
    ask,
    at_desk,
    connected,
    json_option,
    server_options,
    show_json,
)
from penstock.cli.top_view import lines_of
from penstock.desk.views.figures import Overview
from penstock.errors import ClientError, ConnectionLost, NotRunning
from penstock.model.printable import printable

LOOK_S = 1.0
# Topics that are asked for: more do not fit on any screen.
TOPICS = 200
# Where it is not known how wide the terminal is.
SIZE = (100, 40)

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_HOME, _LINE, _REST = "\x1b[H", "\x1b[K", "\x1b[J"


@click.command()
@click.option("--once", is_flag=True, help="Print one look, and end.")
@server_options
@json_option("Print one look as a JSON object, and end.")
def top(*, once: bool, **_: object) -> None:
    """Show what a server does: rates, lag, topics, the most active first.

    It is looked at every second; q ends it. Where standard output is no terminal, one
    look is printed.

    \b
    Examples:
      penstock top
      penstock top --server 127.0.0.1:8410
      penstock top --json | jq .rates
    """
    if not (once or as_json()) and sys.stdin.isatty() and sys.stdout.isatty():
        _watch()
        return
    with at_desk() as desk:
        look = _look(desk)
    if as_json():
        show_json(look)
        return
    width = shutil.get_terminal_size(SIZE).columns
    for line in lines_of(look, width):
        click.echo(line)


def _look(desk: Asker) -> Overview:
    return ask(desk, Overview, "overview", limit=TOPICS)


def _watch() -> None:
    with connected() as desk:  # raises NotRunning before the screen is cleared
        _look(desk)
    with _screen(), _keys() as pressed:
        while True:
            try:
                with connected(patient=False) as desk:
                    while True:
                        _draw(_look(desk))
                        if pressed(LOOK_S):
                            return
            except (ConnectionLost, NotRunning) as error:
                _note(error)
            if pressed(LOOK_S):
                return


def _draw(look: Overview) -> None:
    width, height = shutil.get_terminal_size(SIZE)
    lines = lines_of(look, width, height - 1)
    lines = [*lines[: height - 1], click.style("q quits", dim=True)]
    text = "".join(f"{line}{_LINE}\r\n" for line in lines[:-1])
    _write(f"{_HOME}{text}{lines[-1]}{_LINE}{_REST}")


def _note(error: ClientError) -> None:
    """Say so in the first line, and leave the last look where it is."""
    width = shutil.get_terminal_size(SIZE).columns
    text = printable(f"trying again: {error}")[: width - 1]
    _write(f"{_HOME}{click.style(text, fg='red')}{_LINE}")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@contextmanager
def _screen() -> Iterator[None]:
    """A screen of our own; what was there comes back."""
    _write(_ENTER)
    try:
        yield
    finally:
        _write(_LEAVE)


class _Keys:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __call__(self, seconds: float) -> bool:
        """Wait so long; whether the user wants to end. Any other key looks again."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return False
        pressed = os.read(self._descriptor, 100)
        return not pressed or b"q" in pressed.lower() or b"\x04" in pressed


@contextmanager
def _keys() -> Iterator[_Keys]:
    """Keys as they are pressed; Ctrl-C is still a signal."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield _Keys(descriptor)
    except KeyboardInterrupt:
        return
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
