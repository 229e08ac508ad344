"""What the log reports while a command runs, as lines on standard error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from penstock.cli.output import say, say_text

_logger = logging.getLogger("penstock")
_formatter = logging.Formatter()


class Messages(logging.Handler):
    """Records as lines like the command's own, with the traceback if there is one.

    A line that cannot be written is lost, and harms no caller: what it is about may be
    that the disk is full which it goes to.
    """

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._say(record)
        except OSError:
            self.handleError(record)

    def _say(self, record: logging.LogRecord) -> None:
        say(f"{record.levelname.lower()}: {record.getMessage()}", err=True)
        # logger.error(…, exc_info=True) outside an except block: (None, None, None).
        if record.exc_info and record.exc_info[0] is not None:
            say_text(_formatter.formatException(record.exc_info), err=True)


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


def silent() -> AbstractContextManager[None]:
    """Leave out all records."""
    return limited_to(logging.CRITICAL + 1)
