"""A command that runs until it is told to end, and lets others watch it meanwhile.

    @click.command()
    @part_options
    def serve(...):
        with part() as self:
            self.ready(url=...)
            while not self.stopping.wait(1):
                self.tell(events=..., lag=...)

``--ready-file`` holds JSON once the command is ready, ``--status-file`` is rewritten
about once a second. The first SIGTERM or SIGINT sets ``stopping``; the second ends the
process at once, and so does the time if it takes longer to end than it has patience.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.collector import relieve
from penstock.files import Files, replace_file

logger = logging.getLogger(__name__)

CliCommand = TypeVar("CliCommand", bound=Callable[..., Any])

STATUS_S = 1.0
_OPTIONS = (
    click.option(
        "--ready-file",
        metavar="PATH",
        help="Write process id and address here as JSON, once it is ready.",
    ),
    click.option(
        "--status-file",
        metavar="PATH",
        help="Write how far it is here as JSON, about once a second.",
    ),
)


def part_options(command: CliCommand) -> CliCommand:
    """The command with the options that let others watch it."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class PartReport:
    """What a running command says of itself."""

    def __init__(
        self,
        ready_file: str | None,
        status_file: str | None,
        patience_s: float | None = None,
    ) -> None:
        self.stopping = threading.Event()
        self._patience_s = patience_s
        self._timer: threading.Timer | None = None
        self._ready_file = ready_file
        self._status_file = status_file
        self._told_s = float("-inf")
        self._status: dict[str, object] = {}

    def ready(self, **info: object) -> None:
        """Say that it is ready, and where; what is there by now stays until the end."""
        relieve()
        _write(self._ready_file, {"pid": os.getpid(), **info})

    def tell(
        self, *, events: int, lag: int | None = None, errors: int = 0, **more: object
    ) -> None:
        """Say how far it is; cheap enough to be called for every batch."""
        self._status = {"events": events, "lag": lag, "errors": errors, **more}
        if time.monotonic() - self._told_s >= STATUS_S:
            self.flush()

    def flush(self) -> None:
        """Write what was told last."""
        self._told_s = time.monotonic()
        at_ms = time.time_ns() // 1_000_000
        if self._status:
            info = {"pid": os.getpid(), "at_ms": at_ms, **self._status}
            _write(self._status_file, info)

    def stop(self, *_: object) -> None:
        if self.stopping.is_set():
            os._exit(128 + signal.SIGTERM)
        self.stopping.set()
        if self._patience_s is not None:
            self._timer = threading.Timer(self._patience_s, self._give_up)
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """It has ended in time."""
        if self._timer is not None:
            self._timer.cancel()
        self.flush()
        _clear(self._ready_file)

    def _give_up(self) -> None:
        logger.warning(
            "not ended within %g s of being told to: cut off",
            self._patience_s,
            extra={"action": "part_cut_off"},
        )
        self.flush()
        _clear(self._ready_file)
        os._exit(128 + signal.SIGTERM)


@contextmanager
def part(
    ready_file: str | None = None,
    status_file: str | None = None,
    *,
    patience_s: float | None = None,
) -> Iterator[PartReport]:
    """A part, with the signals of this process; its ready file is gone at the end.

    ``patience_s``: for one that may be cut off at any point, and might wait for others
    that do not come any more.
    """
    self = PartReport(ready_file, status_file, patience_s)
    collecting = gc.get_threshold()
    _clear(ready_file)
    before = {
        number: signal.signal(number, self.stop)
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield self
    finally:
        self.end()
        gc.unfreeze()
        gc.set_threshold(*collecting)
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(path: str | None, info: dict[str, object]) -> None:
    if path is not None:
        data = json.dumps(info, ensure_ascii=False).encode() + b"\n"
        replace_file(Files(), str(Path(path).absolute()), data, sync=False)


def _clear(path: str | None) -> None:
    if path is not None:
        with suppress(FileNotFoundError):
            Path(path).unlink()
