"""How a command says no: one line, and a hint where there is something to do."""

from __future__ import annotations

from typing import IO, Any

import click

from penstock.model.printable import printable


class Refusal(click.ClickException):
    """Ends the command with ``error: …``, ``hint: …`` and exit code 2."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(printable(f"error: {self.message}"), file=file, err=True)
        if self.hint:
            click.echo(printable(f"hint: {self.hint}"), file=file, err=True)
