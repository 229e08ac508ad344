"""How far long work has come, told on standard error while it goes on.

On a terminal that is a bar; elsewhere a line every second or so.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import click

from penstock.cli.output import say
from penstock.cli.refusal import Refusal
from penstock.client.redrive import Progress
from penstock.desk.views.letters import Done
from penstock.errors import ClientError, LogError

LINE_S = 1.0
INTERRUPTED = 130


class Reporter:
    """A context that tells of progress; call it with each.

    Work that is interrupted, or that loses its server, ends with how far it got.
    """

    def __init__(
        self,
        past: str,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.progress = Progress()
        self.results: list[Done] = []
        """What became of each, so far."""
        self._past = past
        self._quiet = quiet
        self._clock = clock
        self._told_s = clock()
        self._bar: Any = None

    def __call__(self, progress: Progress) -> None:
        self.progress = progress
        self.results += progress.results
        if self._quiet:
            return
        if sys.stderr.isatty():
            self._draw()
        elif self._clock() - self._told_s >= LINE_S:
            self._told_s = self._clock()
            say(self.line, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.render_finish()
        if isinstance(error, KeyboardInterrupt):
            say(f"stopped: {self.line}; run it again to go on", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        if isinstance(error, ClientError | LogError) and self.progress.done:
            hint = f"{self.line}; run it again to go on"
            raise Refusal(str(error), hint) from error

    @property
    def line(self) -> str:
        """``12 of 40 republished``, and what could not be."""
        progress = self.progress
        of = "" if progress.total is None else f" of {progress.total}"
        not_so = f", {progress.failed} not" if progress.failed else ""
        return f"{progress.done}{of} {self._past}{not_so}"

    def _draw(self) -> None:
        if self._bar is None:
            self._bar = click.progressbar(
                length=self.progress.total or 0,
                label=self._past,
                show_pos=True,
                file=sys.stderr,
            )
        self._bar.update(self.progress.seen - self._bar.pos)
