"""What commands print: lines for people, and bytes for programs, all of them.

Names, texts and payloads come from their publishers. On a terminal they would move the
cursor or pass for other lines, so nothing that a terminal obeys gets there; bytes that
go to a pipe or a file stay as they are.
"""

from __future__ import annotations

import sys

import click

from penstock.model.printable import printable, printable_json, printable_lines


def say(line: str = "", *, err: bool = False) -> None:
    """One line, whatever is in it."""
    click.echo(printable(line), err=err)


def say_text(text: str, *, err: bool = False, nl: bool = True) -> None:
    """A text that may have lines of its own."""
    click.echo(printable_lines(text), err=err, nl=nl)


class StandardOutput:
    """A sink that is standard output, buffered or not.

    Without a buffer (``python -u``) a write to a pipe may take only a part, and says
    so to its caller only.
    """

    def write(self, data: bytes, /) -> None:
        if sys.stdout.isatty():
            text = data.decode(errors="backslashreplace")
            data = printable_json(text).encode()
        rest = memoryview(data)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]


class StandardText:
    """Standard output for a writer of text, such as CSV."""

    def write(self, text: str, /) -> None:
        terminal = sys.stdout.isatty()
        sys.stdout.write(printable_lines(text) if terminal else text)


def write_line(data: bytes) -> None:
    StandardOutput().write(data + b"\n")
