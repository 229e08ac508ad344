"""Who carries handlers out: a few tasks on the event loop.

A task takes one event after the other while there are some, so that an event costs no
task of its own. A call whose time is over is cancelled; its task is left to its fate
and another one may take its place.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.embedded.run import HandlerRun

logger = logging.getLogger(__name__)

NextRun = Callable[[], HandlerRun | None]
Waiting = Callable[[], bool]
Ahead = Callable[[], int]
RunEnded = Callable[[HandlerRun], None]


class WorkerPool(Protocol):
    """Runs what ``next_run`` gives, up to a number at once; tells ``ended``."""

    def wake(self) -> None:
        """There may be something to do."""

    def running(self) -> Iterable[HandlerRun]:
        """Calls under way, those that began first in front."""

    def give_up(self, run: HandlerRun) -> None:
        """The time of a call is over: stop it if possible, and go on without it."""

    def withdraw(self) -> list[HandlerRun]:
        """Calls that have not begun, and will not begin any more."""

    @property
    def stuck(self) -> int:
        """Calls that were given up and have not ended."""

    @property
    def busy(self) -> bool:
        """Whether any call is under way that was not given up."""

    @property
    def starting(self) -> int:
        """Calls that are about to begin, as nothing is in their way."""

    async def stop(self) -> None:
        """Begin nothing more, and stop what is under way as far as that goes."""


def following(next_run: NextRun) -> HandlerRun | None:
    """The next call; none for now if a mistake of ours is in its way."""
    try:
        return next_run()
    except Exception:
        _report()
        return None


def tell(ended: RunEnded, run: HandlerRun) -> None:
    """Tell what became of a call; a mistake of ours must not cost who made it.

    The events are not settled then: they come again when the program does.
    """
    try:
        ended(run)
    except Exception:
        _report()


def _report() -> None:
    logger.exception(
        "a call of a handler could not be seen to", extra={"action": "handler_slipped"}
    )


class TaskPool:
    """Async handlers, on the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        waiting: Waiting,
        next_run: NextRun,
        ended: RunEnded,
    ) -> None:
        self._loop = loop
        self._limit = limit
        self._waiting = waiting
        self._next_run = next_run
        self._ended = ended
        self._runs: dict[HandlerRun, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._working = 0
        """Tasks that take calls."""
        self._new = 0
        """How many of them have not begun: none, or one."""
        self._stopping = False
        self.stuck = 0

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    @property
    def starting(self) -> int:
        return self._new

    def wake(self) -> None:
        # One at a time, as it wakes the next: calls that wait for nothing need no more.
        if self._new or self._working >= self._limit or self._stopping:
            return
        if self._waiting():
            self._working += 1
            self._new = 1
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def running(self) -> Iterable[HandlerRun]:
        return list(self._runs)

    def give_up(self, run: HandlerRun) -> None:
        del self._runs[run]
        self.stuck += 1
        self._working -= 1
        if run.stop is not None:
            run.stop()

    def withdraw(self) -> list[HandlerRun]:
        return []  # a call is taken when it begins

    async def stop(self) -> None:
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    async def _work(self) -> None:
        """One event after the other: their time begins when they do, not before."""
        self._new = 0
        task = asyncio.current_task()
        assert task is not None, "it runs in a task"
        run = following(self._next_run)
        self.wake()
        while run is not None:
            self._runs[run] = None
            run.stop = task.cancel
            try:
                await run.call()
            except BaseException as error:  # what a handler raises stays with it
                run.error = error
            run.left()
            if run.given_up:  # it was given up, and this task with it
                self.stuck -= 1
                return
            del self._runs[run]
            if self._stopping and isinstance(run.error, asyncio.CancelledError):
                return
            tell(self._ended, run)
            run = None if self._stopping else following(self._next_run)
        self._working -= 1
