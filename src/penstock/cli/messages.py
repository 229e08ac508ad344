"""What the log reports while a command runs, as lines on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

_logger = logging.getLogger("penstock")


class Messages(logging.Handler):
    """Records as lines like the command's own."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"{record.levelname.lower()}: {record.getMessage()}", err=True)


@contextmanager
def messages(level: int) -> Iterator[None]:
    """Show records of this level and above."""
    handler = Messages()
    _logger.addHandler(handler)
    try:
        with limited_to(level):
            yield
    finally:
        _logger.removeHandler(handler)


@contextmanager
def limited_to(level: int) -> Iterator[None]:
    """Leave out records below this level."""
    before = _logger.level
    _logger.setLevel(level)
    try:
        yield
    finally:
        _logger.setLevel(before)
